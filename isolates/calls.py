"""Calls driven to their end on the calling thread, and the inbox they use."""

import time
from dataclasses import dataclass
from typing import Final

from belem.isolates.wasm import Instance, Trapped
from belem.isolates.wasm.instance import Function

__all__ = ["KEPT_BYTES", "SMALLEST_BYTES", "Inbox", "OverCpu", "call", "read_outbox", "reserve"]

SMALLEST_BYTES: Final = 64 << 10
KEPT_BYTES: Final = 1 << 20
HOUSEKEEPING_CPU_SECONDS: Final = 0.1  # on the event loop: seeding, a larger inbox


class OverCpu(Exception):
    """A call used more CPU time than it was given: its instance must be closed."""

    def __init__(self, used_seconds: float) -> None:
        super().__init__(f"{used_seconds:.3f} s")
        self.used_seconds = used_seconds


@dataclass(slots=True)
class Inbox:
    """Where in guest memory a batch goes, and how much room there is."""

    address: int
    capacity: int


def call(
    instance: Instance,
    function: Function,
    *arguments: int,
    cpu_seconds: float = HOUSEKEEPING_CPU_SECONDS,
) -> int:
    """Run a call to its end and return its result, or raise `Trapped` or `OverCpu`.

    The ticker must be running: without ticks, a call that does not end is never handed back.
    """
    instance.begin(function, *arguments)
    started = time.thread_time()
    while not instance.poll():
        used = time.thread_time() - started
        if used > cpu_seconds:
            raise OverCpu(used)
    return instance.finish()


def reserve(instance: Instance, inbox: Inbox, length: int) -> bool:
    """Make the inbox hold `length` bytes; return False if the guest has no memory for it.

    One that a large record made large is given back at the next small one.
    """
    if length <= inbox.capacity <= KEPT_BYTES:
        return True
    capacity = max(SMALLEST_BYTES, (length + 0xFFFF) & ~0xFFFF)
    inbox.capacity = 0  # whatever happens now, the old one is gone
    address = call(instance, instance.inbox, capacity)
    if not address:
        return False
    if address + capacity > instance.memory_bytes:
        raise Trapped(f"an inbox at {address} with {capacity} bytes is outside the memory")
    inbox.address, inbox.capacity = address, capacity
    return True


def read_outbox(instance: Instance, result: int, limit_bytes: int) -> bytes:
    """Copy the outbox that `result` points to, or raise `Trapped`."""
    length = result & 0xFFFFFFFF
    if not length:
        return b""
    if length > limit_bytes:
        raise Trapped(f"an outbox of {length} bytes; the limit is {limit_bytes}")
    return instance.read(result >> 32, length)
