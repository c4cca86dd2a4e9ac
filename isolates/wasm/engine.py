"""The compiler and its settings, among them those that wasmtime-py does not offer.

Hazards that this module keeps its callers from (seen with wasmtime 50):
- a wasm stack larger than a fibre's stack, or a pool that cannot be reserved, aborts the process;
- `deserialize` trusts its input: hand it only what this host serialised (see
  `belem.isolates.cache`).
"""

import hashlib
import platform
import resource
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
    """What compiled code depends on, and how many isolates the pool has room for."""

    wasm_stack_bytes: int = 16 << 20
    fibre_stack_bytes: int = 18 << 20
    max_isolates: int = 1_000
    table_elements: int = 20_000

    def __post_init__(self) -> None:
        if self.wasm_stack_bytes + (1 << 20) > self.fibre_stack_bytes:
            raise ValueError(
                f"A fibre stack of {self.fibre_stack_bytes} bytes is too small for a wasm stack "
                f"of {self.wasm_stack_bytes}; it needs at least 1 MiB more."
            )
        if not 1 <= self.max_isolates <= 20_000:
            raise ValueError(f"{self.max_isolates} isolates; the limit is 20000.")


class Module:
    """Compiled code, or an image's memory. Any thread may use it."""

    __slots__ = ("native",)

    def __init__(self, native: wasmtime.Module) -> None:
        self.native = native

    def serialize(self) -> bytes:
        """Return what `Engine.load` takes, for the same engine settings and CPU only."""
        return bytes(self.native.serialize())


class Engine:
    """One compiler, one pool of memories and one epoch counter."""

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
    if _address_space_is_unlimited():
        _use_pool(native, config)
    return native


def _use_pool(native: wasmtime.Config, config: EngineConfig) -> None:
    """Keep memories in a pool: a spawn is 10 us quicker, and the pool's size bounds the isolates.

    Nothing stays resident in a free slot (zeroing a large one took 1 ms), and slots are given back
    to the kernel sixteen at a time: flat 0.2 ms for spawn, first answer and close together.
    """
    pool = raw.wasmtime_pooling_allocation_config_new()
    count = config.max_isolates
    raw.wasmtime_pooling_allocation_config_total_core_instances_set(pool, 2 * count)
    raw.wasmtime_pooling_allocation_config_total_memories_set(pool, count)
    raw.wasmtime_pooling_allocation_config_total_tables_set(pool, count)
    raw.wasmtime_pooling_allocation_config_total_stacks_set(pool, count)
    raw.wasmtime_pooling_allocation_config_table_elements_set(pool, config.table_elements)
    raw.wasmtime_pooling_allocation_config_max_memory_size_set(pool, _RESERVED_BYTES)
    raw.wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pool, 0)
    raw.wasmtime_pooling_allocation_config_decommit_batch_size_set(pool, 16)
    raw.wasmtime_pooling_allocation_strategy_set(native.ptr(), pool)
    raw.wasmtime_pooling_allocation_config_delete(pool)


def _address_space_is_unlimited() -> bool:
    """Say whether a pool of several terabytes of address space can be reserved."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY


def _cpu_features() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    names = ("flags", "Features")
    return next((line for line in text.splitlines() if line.startswith(names)), "")
