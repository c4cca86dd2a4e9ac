"""Which pages of this process's memory were written to since they were mapped from a file.

A page of a private mapping that was written to is no longer the file's: Linux copied it, and says
so in `/proc/self/pagemap` (proc_pid_pagemap(5)). Kernels since 6.7 list such pages when asked with
the ioctl `PAGEMAP_SCAN`; older ones hand out an entry for each page.
"""

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Sequence
from typing import Final

__all__ = ["WrittenPages"]

_PATH: Final = "/proc/self/pagemap"
_PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")

# An entry of the map is a little-endian word; its flags are in the last byte.
_ENTRY_BYTES: Final = 8
_FLAGS_BYTE: Final = 7
_PRESENT, _SWAPPED, _OF_A_FILE = 0x80, 0x40, 0x20
_WRITTEN: Final = bytes(
    bool(flags & (_PRESENT | _SWAPPED) and not flags & _OF_A_FILE) for flags in range(256)
)

# linux/fs.h: struct pm_scan_arg, struct page_region, and the categories.
_SCAN: Final = 0xC0606610
_ARGUMENT: Final = struct.Struct("<12Q")
_REGION: Final = struct.Struct("<3Q")
_IS_FILE, _IS_PRESENT, _IS_SWAPPED = 1 << 2, 1 << 3, 1 << 4
_MOST_REGIONS: Final = 256

Span = tuple[int, int]


class WrittenPages:
    """Asks the kernel. `supported` is false where it does not tell."""

    def __init__(self) -> None:
        self._regions = (ctypes.c_char * (_MOST_REGIONS * _REGION.size))()
        self._view = memoryview(self._regions)
        self._argument = bytearray(_ARGUMENT.size)
        self._scans = True
        try:
            self._file = os.open(_PATH, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    @property
    def supported(self) -> bool:
        """Say whether there is such a map to ask."""
        return self._file >= 0

    def spans(self, base: int, length: int) -> Sequence[Span] | None:
        """Return where runs of written pages begin and end, as distances from `base`.

        None if there are too many of them, or if the kernel does not say.
        """
        if self._scans:
            try:
                return self._scan(base, length)
            except OSError as error:
                if error.errno not in (errno.ENOTTY, errno.EINVAL):
                    return None
                self._scans = False  # an older kernel
        return self._read(base, length)

    def close(self) -> None:
        """Let go of the map. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _scan(self, base: int, length: int) -> Sequence[Span] | None:
        _ARGUMENT.pack_into(
            self._argument, 0,
            _ARGUMENT.size, 0, base, base + length, 0, ctypes.addressof(self._regions),
            _MOST_REGIONS, 0, _IS_FILE, _IS_FILE, _IS_PRESENT | _IS_SWAPPED, _IS_PRESENT,
        )  # fmt: skip
        count = fcntl.ioctl(self._file, _SCAN, self._argument)
        if count >= _MOST_REGIONS:
            return None
        regions = _REGION.iter_unpack(self._view[: count * _REGION.size])
        return [(start - base, end - base) for start, end, _ in regions]

    def _read(self, base: int, length: int) -> Sequence[Span] | None:
        count = length // _PAGE_BYTES
        entries = os.pread(self._file, count * _ENTRY_BYTES, base // _PAGE_BYTES * _ENTRY_BYTES)
        if len(entries) != count * _ENTRY_BYTES:
            return None
        pages = entries[_FLAGS_BYTE::_ENTRY_BYTES].translate(_WRITTEN)
        spans: list[Span] = []
        start = pages.find(1)
        while start >= 0:
            end = pages.find(0, start)
            if end < 0:
                end = count
            spans.append((start * _PAGE_BYTES, end * _PAGE_BYTES))
            start = pages.find(1, end)
        return spans
