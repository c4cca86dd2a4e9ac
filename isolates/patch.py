"""What a worker's memory differs in from its guest's: some kilobytes of some megabytes.

So a worker costs kilobytes on the disk and in memory where an image of its own would take more than
a megabyte, and all workers' isolates share the pages of one base image.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NewType

__all__ = ["NO_PATCH", "Patch", "apply", "difference", "read_patch", "runs"]

Patch = NewType("Patch", bytes)
"""Runs one after another: an address, a length and as many bytes. One object, as it is on disk."""

NO_PATCH: Final = Patch(b"")

_REGION_BYTES: Final = 1 << 16
_PAGE_BYTES: Final = 1 << 12
# Smaller blocks make more writes and hardly fewer bytes.
_BLOCK_BYTES: Final = 128
_HEAD: Final = struct.Struct("<II")


def difference(base: bytes, memory: bytes) -> Patch:
    """Return what turns `base`, with zeros after its end, into `memory`."""
    base += bytes(len(memory) - len(base))
    everything = [(0, len(memory))]
    regions = _unlike(base, memory, everything, _REGION_BYTES)
    pages = _unlike(base, memory, regions, _PAGE_BYTES)
    blocks = _unlike(base, memory, pages, _BLOCK_BYTES)
    parts: list[bytes] = []
    for start, end in _joined(blocks):
        parts += (_HEAD.pack(start, end - start), memory[start:end])
    return Patch(b"".join(parts))


def apply(base: bytes, patch: Patch, length: int) -> bytes:
    """Return `length` bytes of memory: the base, then zeros, and the patch over them."""
    memory = bytearray(base)
    memory.extend(bytes(length - len(base)))
    for address, content in runs(patch):
        memory[address : address + len(content)] = content
    return bytes(memory)


def runs(patch: Patch) -> Iterator[tuple[int, bytes]]:
    """Yield addresses, and what is there instead; ascending, and never overlapping."""
    offset, end = 0, len(patch)
    while offset < end:
        address, length = _HEAD.unpack_from(patch, offset)
        offset += _HEAD.size
        yield address, patch[offset : offset + length]
        offset += length


def read_patch(data: bytes) -> Patch:
    """Return the bytes as a patch; raise `ValueError` for those that are none."""
    offset = 0
    while offset < len(data):
        if offset + _HEAD.size > len(data):
            raise ValueError(f"The patch ends at {len(data)} within a run's head.")
        _, length = _HEAD.unpack_from(data, offset)
        offset += _HEAD.size + length
        if offset > len(data):
            raise ValueError(f"A run of {length} bytes passes the end, {len(data)}.")
    return Patch(data)


def _unlike(
    base: bytes, memory: bytes, spans: Iterable[tuple[int, int]], step: int
) -> Iterator[tuple[int, int]]:
    """Yield the pieces of the spans, each of `step` bytes, that differ."""
    for start, end in spans:
        for at in range(start, end, step):
            if base[at : at + step] != memory[at : at + step]:
                yield at, min(at + step, end)


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Make one of spans that touch."""
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current is not None and current[1] == start:
            current = (current[0], end)
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current
