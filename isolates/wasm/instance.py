"""One engine on one memory, and calls into it as fibres.

Every call into a guest runs on a fibre's own stack, even a short one: a guest that recurses then
meets its wasm stack limit and never the end of a thread's stack, which would take the process down.
A fibre yields when its epoch deadline passes; whoever polls it next, on any thread, runs it
further; deleting it ends it.

Rules of wasmtime that this module keeps (each breaks the process, not the request):
- while a call is in flight its store is not touched: results, memory and traps are read after the
  delete;
- argument and result arrays outlive the call;
- a store is used by one thread at a time: the callers see to that.
"""

import ctypes
from collections.abc import Callable, Iterable
from typing import Any, Final

import wasmtime

from belem.isolates.wasm.engine import Engine, Module, WasmError
from belem.isolates.wasm.foreign import bindings as raw
from belem.isolates.wasm.foreign import context_of, reason

__all__ = ["Function", "Instance", "Trapped"]

SLICE_TICKS: Final = 2  # 2.5 to 5 ms: the longest that a step holds up the event loop
_I32, _I64 = 0, 1  # wasmtime's value kinds
_WASM_PAGE_BYTES: Final = 65536
_U32: Final = 0xFFFFFFFF
_U64: Final = 0xFFFFFFFFFFFFFFFF
_FAR_TICKS: Final = 1 << 40

# The raw foreign functions, without wasmtime-py's wrapper frames: these run several times in each
# step.
_call_async: Final[Callable[..., Any]] = raw._wasmtime_func_call_async
_poll: Final[Callable[..., bool]] = raw._wasmtime_call_future_poll
_delete: Final[Callable[..., None]] = raw._wasmtime_call_future_delete
_set_deadline: Final[Callable[..., None]] = raw._wasmtime_context_set_epoch_deadline
_data_size: Final[Callable[..., int]] = raw._wasmtime_memory_data_size
_pointer_to: Final[Callable[[Any], Any]] = ctypes.POINTER
_string_at: Final = ctypes.string_at
_memmove: Final = ctypes.memmove


class Trapped(Exception):
    """The guest trapped; its memory is no longer to be trusted to make sense."""


class Function:
    """An exported function with the arrays its calls need, made once."""

    __slots__ = ("arguments", "cells", "count", "reference", "result", "results")

    def __init__(self, native: Any, kinds: tuple[int, ...], result: int | None) -> None:
        self.reference = ctypes.byref(native)
        self.count = len(kinds)
        self.arguments = (raw.wasmtime_val_t * max(1, self.count))()
        for index, kind in enumerate(kinds):
            self.arguments[index].kind = kind
        self.cells = [
            (self.arguments[i].of, "i64" if k == _I64 else "i32") for i, k in enumerate(kinds)
        ]
        self.results = (raw.wasmtime_val_t * 1)()
        self.result = result


class Instance:
    """A store with an image's memory and the engine that runs on it."""

    __slots__ = (
        "_base", "_context", "_current", "_error", "_future", "_instance", "_memory", "_memory_ref",
        "_size", "_store", "_trap", "image", "inbox", "step",
    )  # fmt: skip

    def __init__(
        self, engine: Engine, code: Module, image: Module, *, memory_limit_bytes: int
    ) -> None:
        self.image = image  # what its memory began as
        store = self._store = wasmtime.Store(engine.native)
        store.set_limits(memory_size=memory_limit_bytes, instances=2, tables=1, memories=1)
        context = self._context = context_of(store)
        _set_deadline(context, _FAR_TICKS)
        self._trap: Any = _null(raw.wasm_trap_t)  # Any: opaque pointers
        self._error: Any = _null(raw.wasmtime_error_t)
        self._future: Any = (
            None  # a pointer to a call in flight; ctypes pointers have no useful type
        )
        self._current: Function | None = None
        try:
            externs = (raw.wasmtime_extern_t * 1)()
            memory_owner = self._instantiate(image, None, 0)
            self._export(memory_owner, b"memory", externs[0])
            self._instance = self._instantiate(code, externs, 1)
        except BaseException:
            store.close()
            raise
        self._memory = externs[0].of.memory
        self._memory_ref = ctypes.byref(self._memory)
        data = raw.wasmtime_memory_data(context, self._memory_ref)
        self._base = ctypes.addressof(data.contents)
        self._size = _data_size(context, self._memory_ref)
        # Its header promises an error, its code returns nothing: what comes back is a stale
        # register.
        raw.wasmtime_context_epoch_deadline_async_yield_and_update(context, SLICE_TICKS)
        self.step = self.function(b"belem_step", (_I32, _I64), _I64)
        self.inbox = self.function(b"belem_inbox", (_I32,), _I32)

    def function(self, name: bytes, kinds: tuple[int, ...], result: int | None) -> Function:
        """Return an exported function; raise `WasmError` if there is none of that name."""
        extern = raw.wasmtime_extern_t()
        self._export(self._instance, name, extern)
        if extern.kind != 0:
            raise WasmError(f"The guest's export {name.decode()!r} is not a function.")
        return Function(extern.of.func, kinds, result)

    def exports(self, name: bytes) -> bool:
        """Say whether the guest exports anything of that name."""
        extern = raw.wasmtime_extern_t()
        found = raw.wasmtime_instance_export_get(
            self._context, ctypes.byref(self._instance), name, len(name), ctypes.byref(extern)
        )
        return bool(found)

    # Memory

    @property
    def memory_bytes(self) -> int:
        """Return the memory's size. Not while a call is in flight: then it is the size before."""
        if self._future is None:
            self._size = _data_size(self._context, self._memory_ref)
        return self._size

    def grow_to(self, memory_bytes: int) -> None:
        """Make the memory at least so large; raise `WasmError` if its limit is in the way."""
        pages = (memory_bytes - self.memory_bytes) // _WASM_PAGE_BYTES
        if pages <= 0:
            return
        before = ctypes.c_uint64()
        error = raw.wasmtime_memory_grow(
            self._context, self._memory_ref, pages, ctypes.byref(before)
        )
        if error:
            raise WasmError(reason(error, None))

    def read(self, address: int, length: int) -> bytes:
        """Copy guest memory out; raise `Trapped` if any of it is out of bounds."""
        if address + length > self._size and address + length > self.memory_bytes:
            raise Trapped(
                f"an address of {address} with {length} bytes in {self._size} bytes of memory"
            )
        return _string_at(self._base + address, length)

    @property
    def base(self) -> int:
        """Return where in this process the memory begins. It never moves."""
        return self._base

    def copy_from(self, other: "Instance", spans: Iterable[tuple[int, int]]) -> None:
        """Make parts of the memory the same as the other's, each from an address to another."""
        size = min(self._size, other._size)
        target, source = self._base, other._base
        for start, end in spans:
            if not 0 <= start <= end <= size:
                raise ValueError(f"{start} to {end} is not in both memories, of {size} bytes")
            _memmove(target + start, source + start, end - start)

    def write(self, address: int, data: bytes) -> None:
        """Copy into guest memory; raise `Trapped` if any of it would be out of bounds."""
        length = len(data)
        if address + length > self._size and address + length > self.memory_bytes:
            raise Trapped(
                f"an address of {address} with {length} bytes in {self._size} bytes of memory"
            )
        _memmove(self._base + address, data, length)

    # Calls

    def begin(self, function: Function, *arguments: int) -> None:
        """Start a call; nothing runs before the first `poll`."""
        for (cell, field), value in zip(function.cells, arguments, strict=True):
            setattr(cell, field, value)
        self._launch(function)

    def begin_step(self, length: int, now_us: int) -> None:
        """Start `belem_step`: `begin` without its loop, for the one hot call."""
        cells = self.step.cells
        cells[0][0].i32 = length
        cells[1][0].i64 = now_us
        self._launch(self.step)

    def poll(self) -> bool:
        """Run the call in flight until it ends (true) or its slice does (false)."""
        return _poll(self._future)

    def finish(self) -> int:
        """Return what the ended call returned (unsigned), or raise `Trapped`."""
        future, self._future = self._future, None
        _delete(future)
        if self._trap or self._error:
            raise Trapped(self._failure())
        function = self._current
        if function is None or function.result is None:
            return 0
        of = function.results[0].of
        value: int = of.i64 & _U64 if function.result == _I64 else of.i32 & _U32
        return value

    def close(self) -> None:
        """End any call in flight and free the memory. Safe to call twice."""
        if self._future is not None:
            future, self._future = self._future, None
            _delete(future)
        self._store.close()

    def _launch(self, function: Function) -> None:
        if self._future is not None:
            raise RuntimeError("A call is already in flight in this instance.")
        self._current = function
        _set_deadline(self._context, SLICE_TICKS)
        self._future = _call_async(
            self._context,
            function.reference,
            function.arguments,
            function.count,
            function.results,
            0 if function.result is None else 1,
            ctypes.byref(self._trap),
            ctypes.byref(self._error),
        )

    def _failure(self) -> str:
        """Take the trap's or error's text, and the ownership of both."""
        trap: Any = self._trap
        error: Any = self._error
        self._trap = _null(raw.wasm_trap_t)
        self._error = _null(raw.wasmtime_error_t)
        return reason(error, trap)

    def _instantiate(self, module: Module, externs: Any, count: int) -> Any:
        instance = raw.wasmtime_instance_t()
        trap: Any = _null(raw.wasm_trap_t)  # Any: opaque
        error = raw.wasmtime_instance_new(
            self._context,
            module.native.ptr(),
            externs,
            count,
            ctypes.byref(instance),
            ctypes.byref(trap),
        )
        if error or trap:
            raise WasmError(reason(error, trap))
        return instance

    def _export(self, instance: Any, name: bytes, into: Any) -> None:
        found = raw.wasmtime_instance_export_get(
            self._context, ctypes.byref(instance), name, len(name), ctypes.byref(into)
        )
        if not found:
            raise WasmError(f"The guest does not export {name.decode()!r}.")


def _null(kind: Any) -> Any:  # Any: opaque ctypes pointers
    """Return a null pointer that a call can set."""
    return _pointer_to(kind)()
