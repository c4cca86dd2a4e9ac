from pathlib import Path

import pytest

from belem.runtime.project.resolve import SpecifierKind, classify, resolve_relative


@pytest.mark.parametrize(
    ("specifier", "kind"),
    [
        ("./a", SpecifierKind.RELATIVE),
        ("..", SpecifierKind.RELATIVE),
        (".", SpecifierKind.RELATIVE),
        ("../a.js", SpecifierKind.RELATIVE),
        (".hidden", SpecifierKind.PACKAGE),
        ("hono", SpecifierKind.PACKAGE),
        ("@hono/zod", SpecifierKind.PACKAGE),
        ("buffers", SpecifierKind.PACKAGE),
        ("buffer", SpecifierKind.NODE),
        ("fs/promises", SpecifierKind.NODE),
        ("node:test", SpecifierKind.NODE),
        ("cloudflare:email", SpecifierKind.PLATFORM),
        ("https://a/b.js", SpecifierKind.ABSOLUTE),
        ("data:text/javascript,0", SpecifierKind.ABSOLUTE),
        ("/a", SpecifierKind.ABSOLUTE),
    ],
)
def test_a_specifier_shows_its_kind(specifier: str, kind: SpecifierKind) -> None:
    assert classify(specifier) is kind


def test_all_that_was_looked_at_is_told(tmp_path: Path) -> None:
    resolution = resolve_relative(tmp_path, "./a")

    assert resolution.path is None
    assert tmp_path / "a.ts" in resolution.tried
    assert tmp_path / "a/index.json" in resolution.tried


@pytest.mark.parametrize("specifier", ["./" + "a" * 5000, "./a\0b", "./.", "./..", "./?x", "./a/"])
def test_odd_specifiers_are_only_not_found(tmp_path: Path, specifier: str) -> None:
    assert resolve_relative(tmp_path / "in", specifier).path is None


def test_a_query_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.bin").touch()

    assert resolve_relative(tmp_path, "./a.bin?module").path == tmp_path / "a.bin"


def test_a_folder_is_no_module(tmp_path: Path) -> None:
    (tmp_path / "a.ts").mkdir()

    assert resolve_relative(tmp_path, "./a").path is None
