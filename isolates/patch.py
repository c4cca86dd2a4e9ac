"""What a worker's memory differs in from its guest's: some kilobytes of some megabytes.

So a worker costs kilobytes on the disk and in memory where an image of its own would take more than
a megabyte, and all workers' isolates share the pages of one base image.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["Patch", "apply", "difference", "pack_patch", "size_bytes", "unpack_patch"]

Patch = tuple[tuple[int, bytes], ...]
"""Addresses, and what is there instead; ascending, and never overlapping."""

_REGION_BYTES: Final = 1 << 16
_PAGE_BYTES: Final = 1 << 12
# Smaller blocks make more writes and hardly fewer bytes.
_BLOCK_BYTES: Final = 128
_RUN: Final = struct.Struct("<II")  # address and length, then as many bytes


def difference(base: bytes, memory: bytes) -> Patch:
    """Return what turns `base`, with zeros after its end, into `memory`."""
    base += bytes(len(memory) - len(base))
    everything = [(0, len(memory))]
    regions = _unlike(base, memory, everything, _REGION_BYTES)
    pages = _unlike(base, memory, regions, _PAGE_BYTES)
    blocks = _unlike(base, memory, pages, _BLOCK_BYTES)
    return tuple((start, memory[start:end]) for start, end in _joined(blocks))


def apply(base: bytes, patch: Patch, length: int) -> bytes:
    """Return `length` bytes of memory: the base, then zeros, and the patch over them."""
    memory = bytearray(base)
    memory.extend(bytes(length - len(base)))
    for address, content in patch:
        memory[address : address + len(content)] = content
    return bytes(memory)


def size_bytes(patch: Patch) -> int:
    """Return how much memory a patch writes."""
    return sum(len(content) for _, content in patch)


def pack_patch(patch: Patch) -> bytes:
    """Return the patch as bytes."""
    return b"".join(
        part for address, content in patch for part in (_RUN.pack(address, len(content)), content)
    )


def unpack_patch(data: bytes) -> Patch:
    """Undo `pack_patch`; raise `ValueError` for bytes that it did not make."""
    runs: list[tuple[int, bytes]] = []
    offset = 0
    while offset < len(data):
        if offset + _RUN.size > len(data):
            raise ValueError(f"The patch ends at {len(data)} within a run's head.")
        address, length = _RUN.unpack_from(data, offset)
        offset += _RUN.size
        if offset + length > len(data):
            raise ValueError(f"A run of {length} bytes at {offset} passes the end, {len(data)}.")
        runs.append((address, data[offset : offset + length]))
        offset += length
    return tuple(runs)


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
