"""The compiler and its settings, among them those that wasmtime-py does not offer.

Hazards that this module keeps its callers from (seen with wasmtime 50):
- a wasm stack larger than a fibre's stack aborts the process;
- `deserialize` trusts its input: hand it only what this host serialised (`belem.isolates.cache`).

Memories and fibre stacks are mapped for each isolate and unmapped with it, not pooled. The pool
made spawn and close 5 % cheaper, but it never gives a stack's pages back: one worker that recurses
to the limit would have pinned its stack in each slot it met, for good (seen: 8 isolates, 770 MiB).
"""

import hashlib
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import wasmtime

from belem.isolates.wasm.foreign import bindings as raw

__all__ = ["Engine", "EngineConfig", "Module", "WasmError"]

_RESERVED_BYTES: Final = (
    4 << 30
)  # of address space for each memory: bounds checks then cost nothing


class WasmError(Exception):
    """Wasmtime refused a module, a memory or an instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """What compiled code depends on."""

    # 4 MiB of a guest's own C stack came to 14 MiB in the deepest recursions tried.
    wasm_stack_bytes: int = 24 << 20
    fibre_stack_bytes: int = 26 << 20

    def __post_init__(self) -> None:
        if self.wasm_stack_bytes + (1 << 20) > self.fibre_stack_bytes:
            raise ValueError(
                f"A fibre stack of {self.fibre_stack_bytes} bytes is too small for a wasm stack "
                f"of {self.wasm_stack_bytes}; it needs at least 1 MiB more."
            )


class Module:
    """Compiled code, or an image's memory. Any thread may use it."""

    __slots__ = ("native",)

    def __init__(self, native: wasmtime.Module) -> None:
        self.native = native

    def serialize(self) -> bytes:
        """Return what `Engine.load` takes, for the same engine settings and CPU only."""
        return bytes(self.native.serialize())


class Engine:
    """One compiler and one epoch counter."""

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self._native = wasmtime.Engine(_native_config(config))
        settings = (asdict(config), version("wasmtime"), platform.platform(), _cpu_features())
        self.identity = hashlib.sha256(repr(settings).encode()).hexdigest()

    @property
    def native(self) -> wasmtime.Engine:
        return self._native

    def compile(self, wasm: bytes) -> Module:
        """Compile a module: a second for an engine, a millisecond for an image."""
        try:
            return Module(wasmtime.Module(self._native, wasm))
        except wasmtime.WasmtimeError as error:
            raise WasmError(str(error)) from error

    def load(self, path: Path) -> Module:
        """Map a serialised module. The file is trusted: it holds native code."""
        try:
            return Module(wasmtime.Module.deserialize_file(self._native, str(path)))
        except wasmtime.WasmtimeError as error:
            raise WasmError(str(error)) from error

    def close(self) -> None:
        """Free the engine once its modules and stores are gone too. Safe to call twice."""
        self._native.close()


def _native_config(config: EngineConfig) -> wasmtime.Config:
    native = wasmtime.Config()
    # First, because wasmtime aborts if the wasm stack is ever larger than the fibre's.
    raw.wasmtime_config_async_stack_size_set(native.ptr(), config.fibre_stack_bytes)
    native.max_wasm_stack = config.wasm_stack_bytes
    native.epoch_interruption = True
    native.memory_init_cow = True
    native.wasm_threads = False
    native.wasm_bulk_memory = True
    native.wasm_simd = True
    raw.wasmtime_config_memory_may_move_set(native.ptr(), False)
    raw.wasmtime_config_memory_reservation_set(native.ptr(), _RESERVED_BYTES)
    return native


def _cpu_features() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = ("flags", "Features")
    return next((line for line in text.splitlines() if line.startswith(names)), "")
