"""Wasmtime, wrapped: the only package that touches its private bindings."""

from belem.isolates.wasm.engine import Engine, EngineConfig, Module, WasmError
from belem.isolates.wasm.instance import Instance, Trapped
from belem.isolates.wasm.ticker import Ticker

__all__ = ["Engine", "EngineConfig", "Instance", "Module", "Ticker", "Trapped", "WasmError"]
