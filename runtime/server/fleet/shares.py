"""How many connections each process of a fleet has, in memory that they share."""

import mmap
import os
import tempfile
from typing import Final

__all__ = ["Shares", "make_shares_file"]

_COUNT_BYTES: Final = 4
_ABSENT: Final = -1


def make_shares_file(processes: int) -> int:
    """Return the descriptor of a file in memory with a count for each process, all absent."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("belem-shares", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.write(descriptor, _ABSENT.to_bytes(_COUNT_BYTES, "little", signed=True) * processes)
    return descriptor


class Shares:
    """One process's view: it writes its own count, and reads the others'.

    The counts are hints. Each is one aligned word that one process writes, so there is no lock, and
    a process that dies leaves at worst a wrong number until its supervisor calls `leave`.
    """

    def __init__(self, descriptor: int, process: int) -> None:
        self._memory = mmap.mmap(descriptor, 0)
        self._counts = memoryview(self._memory).cast("i")
        self._process = process

    def join(self) -> None:
        """Begin to take connections."""
        self._counts[self._process] = 0

    def leave(self) -> None:
        """Say that this process takes none."""
        self._counts[self._process] = _ABSENT

    def add(self, connections: int) -> None:
        """Count connections that opened, or closed."""
        count = self._counts[self._process]
        if count != _ABSENT:
            self._counts[self._process] = max(0, count + connections)

    def ahead(self) -> bool:
        """Return whether another process has clearly fewer connections than this one."""
        counts = self._counts.tolist()
        least = min((count for count in counts if count != _ABSENT), default=0)
        return counts[self._process] > least + least // 8

    def close(self) -> None:
        """Let go of the memory."""
        self._counts.release()
        self._memory.close()
