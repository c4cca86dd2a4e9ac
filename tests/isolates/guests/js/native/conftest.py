"""The bare engine: js.wasm without boot code, and without our host."""

from pathlib import Path

import pytest
from wasmtime import Config, Engine, Module

from belem.isolates.guests import js
from tests.support.js_guest import JsGuest

Compiled = tuple[Engine, Module]


@pytest.fixture(scope="session")
def compiled() -> Compiled:
    """The module, compiled once for the run."""
    config = Config()
    config.max_wasm_stack = 1 << 20  # 4 times the C stack that the tests give JavaScript
    engine = Engine(config)
    return engine, Module(engine, Path(js.__file__).with_name("js.wasm").read_bytes())


@pytest.fixture
def guest(compiled: Compiled) -> JsGuest:
    """A fresh instance."""
    return JsGuest(*compiled)
