"""The recipe of js.wasm, and the module it made."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from wasmtime import Engine, FuncType, MemoryType, Module

from belem.isolates.guests import build as guests
from belem.isolates.guests.building import Outputs, PlainSteps, Replacement, Sdist, Sources
from belem.isolates.guests.js import build as js
from belem.isolates.snapshot import split_guest

WASM = Path(js.__file__).parent / js.WASM_NAME


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """A copy of our C files."""
    return Path(shutil.copytree(js.NATIVE, tmp_path / "native"))


def test_the_key_is_stable(native: Path) -> None:
    assert js.build_key() == js.build_key() == js.build_key(native)


def test_the_key_changes_with_a_c_file(native: Path) -> None:
    with native.joinpath("text.c").open("a") as file:
        file.write("\n")

    assert js.build_key(native) != js.build_key()


def test_the_key_changes_with_the_name_of_a_c_file(native: Path) -> None:
    native.joinpath("text.c").rename(native / "texts.c")

    assert js.build_key(native) != js.build_key()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SDISTS", (Sdist("quickjs-ng", "0.17.0.2", "0" * 64), js.SDISTS[1])),
        ("ZIG_VERSION", "0.18.0"),
        ("PATCHES", {"quickjs.c": [Replacement("why", "old", "new")]}),
        ("FLAGS", ("-O2",)),
        ("LINK_FLAGS", ()),
        ("UNITS", ()),
    ],
)
def test_the_key_changes_with_the_recipe(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    before = js.build_key()

    monkeypatch.setattr(js, name, value)

    assert js.build_key() != before


def test_a_second_call_builds_nothing(tmp_path: Path) -> None:
    def no_download(sdists: Sequence[Sdist], folder: Path) -> None:
        raise AssertionError("downloaded again")

    folder = tmp_path / "guests" / js.build_key()
    folder.mkdir(parents=True)
    folder.joinpath(js.WASM_NAME).write_bytes(b"built before")
    sources = Sources(tmp_path / "sources", download=no_download)

    built = js.build(Outputs(tmp_path / "guests"), sources, PlainSteps())

    assert built.read_bytes() == b"built before"
    assert not tmp_path.joinpath("sources").exists()


def test_building_the_guests_again_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    guests.build_guests(PlainSteps())  # a test run has built them
    capsys.readouterr()
    before = WASM.stat().st_mtime_ns

    guests.build_guests(PlainSteps())

    assert WASM.stat().st_mtime_ns == before
    assert capsys.readouterr().err == ""


def test_the_module_asks_nothing_of_its_host_and_exports_the_abi() -> None:
    module = Module(Engine(), WASM.read_bytes())

    assert list(module.imports) == []
    exports = {export.name: export.type for export in module.exports}
    assert isinstance(exports.pop("memory"), MemoryType)
    shapes = {
        name: ([str(p) for p in kind.params], [str(r) for r in kind.results])
        for name, kind in exports.items()
        if isinstance(kind, FuncType)
    }
    assert shapes == {
        "_initialize": ([], []),
        "belem_init": (["i32", "i32"], []),
        "belem_inbox": (["i32"], ["i32"]),
        "belem_load": (["i32", "i32", "i32"], ["i64"]),
        "belem_step": (["i32", "i64"], ["i64"]),
        "belem_collect": ([], []),
        "belem_heap_bytes": ([], ["i32"]),
    }


def test_the_modules_memory_is_its_whole_state() -> None:
    split_guest(WASM.read_bytes())  # raises for a second memory or mutable global
