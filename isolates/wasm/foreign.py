"""Wasmtime's private bindings, by the names used here and nowhere else.

They are generated, typed by opaque pointers only, and may change with any release: `wasmtime` is
pinned, and a test calls every one of them. What the public classes keep to themselves is reached
through functions below.
"""

import ctypes
from typing import Any, Final, cast

import wasmtime

# A private module, on purpose: the public API has no fibres, no pool and no unchecked calls.
from wasmtime import _bindings as generated
from wasmtime import _ffi as library

__all__ = ["bindings", "context_of", "increment_epoch_address", "reason"]

# Any: ctypes pointers carry no more than the names already say.
bindings: Final[Any] = generated


def context_of(store: wasmtime.Store) -> Any:  # Any: as above
    """Return the context that every call on a store wants."""
    return cast(Any, store)._context()


def increment_epoch_address() -> int:
    """Return the address of `wasmtime_engine_increment_epoch`, for a clock that is not Python."""
    function = cast(Any, library).dll.wasmtime_engine_increment_epoch
    address = ctypes.cast(function, ctypes.c_void_p).value
    if address is None:
        raise RuntimeError("wasmtime has no epochs.")
    return address


def reason(error: Any, trap: Any) -> str:  # Any: as above
    """Take ownership of an error, a trap or both; return the line that says why."""
    texts: list[str] = []
    if error:
        texts.append(str(cast(Any, wasmtime.WasmtimeError)._from_ptr(error)))
    if trap:
        texts.append(str(cast(Any, wasmtime.Trap)._from_ptr(trap).message))
    lines = [line.strip() for line in "\n".join(texts).splitlines() if line.strip()]
    cause = [line for line in lines if "wasm trap" in line or "exceed" in line]
    return (cause or lines or ["unknown trap"])[0]
