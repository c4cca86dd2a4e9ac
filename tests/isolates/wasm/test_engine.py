"""Engines: settings that would abort the process are refused, modules survive a round trip."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import wasmtime

from belem.isolates.wasm import Engine, EngineConfig, WasmError

WASM = bytes(wasmtime.wat2wasm('(module (memory (export "memory") 1))'))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine(EngineConfig())
    yield engine
    engine.close()
    engine.close()


def test_a_wasm_stack_that_does_not_fit_its_fibre_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 MiB more"):
        EngineConfig(wasm_stack_bytes=8 << 20, fibre_stack_bytes=8 << 20)


def test_a_serialised_module_is_loaded_again(tmp_path: Path, engine: Engine) -> None:
    path = tmp_path / "module.cwasm"
    path.write_bytes(engine.compile(WASM).serialize())

    assert engine.load(path).serialize()


def test_what_is_no_module_is_refused(tmp_path: Path, engine: Engine) -> None:
    (tmp_path / "junk").write_bytes(b"junk")

    with pytest.raises(WasmError):
        engine.load(tmp_path / "junk")
    with pytest.raises(WasmError):
        engine.load(tmp_path / "missing")
    with pytest.raises(WasmError):
        engine.compile(b"\0asm junk")


def test_the_identity_depends_on_the_settings(engine: Engine) -> None:
    smaller = Engine(EngineConfig(wasm_stack_bytes=16 << 20))

    assert smaller.identity != engine.identity
    smaller.close()
