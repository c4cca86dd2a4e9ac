"""The compiler."""

import importlib.metadata
from pathlib import Path

import pytest

from belem.isolates.guests.building import BuildFailed, Unit, Zig


def test_c_is_compiled_and_linked_to_a_wasm_module(tmp_path: Path) -> None:
    tmp_path.joinpath("answer.c").write_text(
        '__attribute__((export_name("answer"))) int answer(void) { return VALUE; }'
    )
    units = [Unit("answer.c", ("-DVALUE=42",))]
    zig = Zig(tmp_path)

    zig.compile(units, ["-O1"])
    wasm = zig.link(units, ["-Wl,--strip-all"], "answer.wasm")

    assert wasm.read_bytes().startswith(b"\0asm")


def test_the_compilers_own_message_is_shown(tmp_path: Path) -> None:
    tmp_path.joinpath("wrong.c").write_text("int f(void) { return nowhere; }")

    with pytest.raises(BuildFailed, match=r"(?s)status.*undeclared identifier 'nowhere'"):
        Zig(tmp_path).compile([Unit("wrong.c")], [])


def test_another_version_is_refused_with_the_command_that_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        return "0.99.0"

    monkeypatch.setattr(importlib.metadata, "version", version)

    with pytest.raises(BuildFailed, match=r"installed is 0\.99\.0.*pip install ziglang=="):
        Zig(tmp_path)


@pytest.mark.parametrize(("path", "compiler"), [("a/b.c", "cc"), ("a/b.cpp", "c++")])
def test_a_units_language_follows_its_name(path: str, compiler: str) -> None:
    unit = Unit(path)

    assert (unit.compiler, unit.object_name) == (compiler, "b.o")
