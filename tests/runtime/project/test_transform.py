import os
from pathlib import Path

import pytest

from belem.runtime.project.transform import (
    JAVASCRIPT,
    JSX,
    TYPESCRIPT,
    ParseFailure,
    Transformer,
)
from belem.sdk.folders import user_cache_directory


@pytest.fixture(scope="module")
def kept(cache_directory: Path) -> Path:
    """The compiled transform, as the first use leaves it in a cache."""
    Transformer(cache_directory)("a.ts", "let a = 1", TYPESCRIPT)
    (path,) = cache_directory.glob("oxc-*.cwasm")
    return path


def test_types_are_stripped(transformer: Transformer) -> None:
    output = transformer("a.ts", "export const a: number = 1 as any;", TYPESCRIPT)

    assert output == "export const a = 1;\n"


def test_enums_and_parameter_properties_become_code(transformer: Transformer) -> None:
    output = transformer(
        "a.ts", "enum E { A }\nclass C { constructor(readonly x = 1) {} }", TYPESCRIPT
    )

    assert 'E[E["A"] = 0] = "A"' in output
    assert "this.x = x" in output


def test_imports_of_types_alone_are_dropped(transformer: Transformer) -> None:
    source = 'import { a, type T } from "./a"; import { U } from "./u"; let x: U = a; export { x };'

    output = transformer("a.ts", source, TYPESCRIPT)

    assert 'import { a } from "./a";' in output
    assert "./u" not in output


def test_jsx_becomes_calls(transformer: Transformer) -> None:
    assert "_jsx(" in transformer("a.tsx", "export default (a: number) => <p>{a}</p>", JSX)


def test_plain_javascript_is_judged_and_left_as_it_is(transformer: Transformer) -> None:
    source = "export  const a = 1 // b\n\n\nexport { a as c };"

    assert transformer("a.js", source, JAVASCRIPT) == source
    with pytest.raises(ParseFailure):
        transformer("a.js", "let a: number = 1", JAVASCRIPT)


def test_a_refusal_gives_its_reasons(transformer: Transformer) -> None:
    with pytest.raises(ParseFailure) as caught:
        transformer("dir: x/ü.ts", "let a = ;", TYPESCRIPT)

    assert caught.value.reasons == ("Unexpected token",)


def test_deep_nesting_is_refused_and_the_next_source_is_not(transformer: Transformer) -> None:
    with pytest.raises(ParseFailure, match="nested too deeply"):
        transformer("a.ts", "(" * 200_000, TYPESCRIPT)

    assert transformer("a.ts", "let a = 1", TYPESCRIPT) == "let a = 1;\n"


def test_half_a_surrogate_pair_is_refused(transformer: Transformer) -> None:
    with pytest.raises(ParseFailure, match="surrogate"):
        transformer("a.ts", "'\ud800'", TYPESCRIPT)


def test_the_compiled_transform_is_kept_for_the_user_alone(kept: Path) -> None:
    state = kept.stat()

    assert state.st_mode & 0o077 == 0
    assert state.st_size > 1_000_000


def test_a_kept_transform_is_used(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / kept.name
    path.write_bytes(kept.read_bytes())
    path.chmod(0o600)
    before = path.stat().st_mtime_ns

    assert Transformer(tmp_path)("a.ts", "let b", TYPESCRIPT) == "let b;\n"

    assert path.stat().st_mtime_ns == before


def test_a_kept_transform_that_others_could_write_is_made_again(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / kept.name
    path.write_bytes(b"not wasm at all")
    os.chmod(path, 0o620)

    assert Transformer(tmp_path)("a.ts", "let b", TYPESCRIPT) == "let b;\n"

    assert path.stat().st_mode & 0o022 == 0
    assert path.stat().st_size > 1_000_000


def test_a_broken_kept_transform_is_made_again(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / kept.name
    path.write_bytes(b"not wasm at all")
    path.chmod(0o600)

    assert Transformer(tmp_path)("a.ts", "let b", TYPESCRIPT) == "let b;\n"


def test_a_cache_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    assert Transformer(tmp_path / "file" / "cache")("a.ts", "let b", TYPESCRIPT) == "let b;\n"


def test_the_cache_is_where_the_desktop_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache_directory() == tmp_path / "belem"

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache_directory() == tmp_path / ".cache" / "belem"
