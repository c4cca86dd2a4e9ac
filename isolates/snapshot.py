"""Linear memory as wasm modules: writing images, parting engine from memory.

A guest's wasm is split once: the *engine* imports its memory and has no data; the *image* has a
memory, data segments and no code. So only the engine ever needs compiling, and wasmtime maps an
image copy-on-write. The guest's wasm is our own build, but it is parsed with every bound checked
all the same: it is a file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from belem.isolates.errors import GuestInvalid

__all__ = ["MEMORY_IMPORT", "SplitGuest", "image_module", "split_guest"]

MEMORY_IMPORT: Final = ("env", "memory")
WASM_PAGE_BYTES: Final = 65536
_MAX_PAGES: Final = 65536
_PAGE_BYTES: Final = 4096  # what copy-on-write works in
_MAGIC: Final = b"\0asm\x01\0\0\0"

# Section ids of the binary format, in the order in which the format wants them.
_CUSTOM, _TYPE, _IMPORT, _FUNCTION, _TABLE, _MEMORY, _GLOBAL = 0, 1, 2, 3, 4, 5, 6
_EXPORT, _START, _ELEMENT, _CODE, _DATA, _DATA_COUNT = 7, 8, 9, 10, 11, 12


@dataclass(frozen=True, slots=True)
class SplitGuest:
    """An engine module that imports its memory, and the image module it starts from."""

    engine: bytes
    image: bytes


def split_guest(wasm: bytes) -> SplitGuest:
    """Part code from memory; raise `GuestInvalid` if memory is not all its state."""
    sections = list(_sections(wasm))
    by_id = {id: payload for id, payload in sections if id != _CUSTOM}
    if len(by_id) != sum(1 for id, _ in sections if id != _CUSTOM):
        raise GuestInvalid("The guest's wasm has a section twice.")
    if _START in by_id:
        raise GuestInvalid("The guest's wasm has a start function; the ABI has none.")
    _check_globals(by_id.get(_GLOBAL, b"\0"))
    pages = _memory_pages(by_id)
    module, field = MEMORY_IMPORT
    memory_import = _name(module) + _name(field) + b"\x02" + _limits(pages)
    kept = {
        id: payload
        for id, payload in by_id.items()
        if id not in (_IMPORT, _MEMORY, _DATA, _DATA_COUNT)
    }
    kept[_IMPORT] = _vector([memory_import])
    data = by_id.get(_DATA, b"\0")
    _check_segments(data, pages * WASM_PAGE_BYTES)
    # Ids are in the format's order but for the data count, which is dropped, so sorting is enough.
    return SplitGuest(engine=_module(sorted(kept.items())), image=_image(pages, data))


def image_module(memory: bytes) -> bytes:
    """Return a code-free module whose exported memory begins as `memory`."""
    if len(memory) % WASM_PAGE_BYTES:
        raise ValueError(f"A memory of {len(memory)} bytes is not a whole number of wasm pages.")
    runs = list(_runs(memory))
    segments = [
        b"\0\x41" + _signed(start) + b"\x0b" + _unsigned(end - start) + memory[start:end]
        for start, end in runs
    ]
    return _image(len(memory) // WASM_PAGE_BYTES, _vector(segments))


# Reading


class _Reader:
    """A cursor over bytes that refuses to leave them."""

    __slots__ = ("data", "offset")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.offset = 0

    @property
    def finished(self) -> bool:
        return self.offset >= len(self.data)

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, length: int) -> bytes:
        end = self.offset + length
        if end > len(self.data):
            raise GuestInvalid(
                f"The guest's wasm ends early: {length} bytes wanted, "
                f"{len(self.data) - self.offset} left."
            )
        taken = self.data[self.offset : end]
        self.offset = end
        return taken

    def unsigned(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                if value >> 32:
                    break
                return value
        raise GuestInvalid("The guest's wasm has a number of more than 32 bits.")

    def signed(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value - (1 << shift + 7) if byte & 0x40 else value
        raise GuestInvalid("The guest's wasm has a number of more than 32 bits.")

    def name(self) -> bytes:
        return self.take(self.unsigned())


def _sections(wasm: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(wasm)
    if reader.take(8) != _MAGIC:
        raise GuestInvalid("The guest is not a wasm module of version 1.")
    while not reader.finished:
        id = reader.byte()
        if id > _DATA_COUNT:
            raise GuestInvalid(f"The guest's wasm has a section {id}, which is not known here.")
        yield id, reader.take(reader.unsigned())


def _memory_pages(sections: dict[int, bytes]) -> int:
    """Return the memory's smallest size, whether the module defines it or imports it."""
    imported = _imported_memories(sections.get(_IMPORT, b"\0"))
    defined: list[int] = []
    reader = _Reader(sections.get(_MEMORY, b"\0"))
    for _ in range(reader.unsigned()):
        defined.append(_read_limits(reader))
    if len(imported) + len(defined) != 1:
        raise GuestInvalid(
            f"The guest has {len(imported) + len(defined)} memories; the ABI wants one."
        )
    return (imported + defined)[0]


def _imported_memories(payload: bytes) -> list[int]:
    memories: list[int] = []
    reader = _Reader(payload)
    for _ in range(reader.unsigned()):
        module, field, kind = reader.name(), reader.name(), reader.byte()
        if kind != 2:
            raise GuestInvalid(
                f"The guest imports {module!r}.{field!r}; it may import nothing but its memory."
            )
        memories.append(_read_limits(reader))
    return memories


def _read_limits(reader: _Reader) -> int:
    flags = reader.byte()
    if flags not in (0, 1):
        raise GuestInvalid(
            f"The guest's memory has flags {flags}: shared or 64-bit memory is not allowed."
        )
    pages = reader.unsigned()
    if flags == 1:
        reader.unsigned()
    if not 0 < pages <= _MAX_PAGES:
        raise GuestInvalid(
            f"The guest's memory begins with {pages} pages; the limit is {_MAX_PAGES}."
        )
    return pages


def _check_globals(payload: bytes) -> None:
    """Make sure that only the stack pointer can change: memory is the whole state."""
    reader = _Reader(payload)
    mutable = 0
    for _ in range(reader.unsigned()):
        type, mutability = reader.byte(), reader.byte()
        mutable += mutability
        opcode = reader.byte()
        if type != 0x7F or mutability > 1 or opcode != 0x41:
            raise GuestInvalid("The guest has a global that is not a constant i32.")
        reader.signed()
        if reader.byte() != 0x0B:
            raise GuestInvalid("The guest has a global whose start is not one constant.")
    if mutable != 1:
        raise GuestInvalid(
            f"The guest has {mutable} mutable globals; an image can only restore one."
        )


def _check_segments(payload: bytes, memory_bytes: int) -> None:
    """Make sure that data segments are active, at constant offsets, inside memory."""
    reader = _Reader(payload)
    for index in range(reader.unsigned()):
        if reader.byte() != 0 or reader.byte() != 0x41:
            raise GuestInvalid(
                f"The guest's data segment {index} is not active at a constant offset."
            )
        offset = reader.signed() & 0xFFFFFFFF
        if reader.byte() != 0x0B:
            raise GuestInvalid(f"The guest's data segment {index} has more than a constant offset.")
        end = offset + len(reader.name())
        if end > memory_bytes:
            raise GuestInvalid(
                f"The guest's data segment {index} ends at {end}; "
                f"its memory has {memory_bytes} bytes."
            )


# Writing

_BLOCK_BYTES: Final = 64 * _PAGE_BYTES
_ZERO_PAGE: Final = bytes(_PAGE_BYTES)
_ZERO_BLOCK: Final = bytes(_BLOCK_BYTES)


def _runs(memory: bytes) -> Iterator[tuple[int, int]]:
    """Yield the runs of pages that are not all zero."""
    start = None
    offset = 0
    while offset < len(memory):
        if memory[offset : offset + _PAGE_BYTES] != _ZERO_PAGE:
            if start is None:
                start = offset
            offset += _PAGE_BYTES
            continue
        if start is not None:
            yield start, offset
            start = None
        offset += _PAGE_BYTES
        while memory[offset : offset + _BLOCK_BYTES] == _ZERO_BLOCK:  # quick over what is empty
            offset += _BLOCK_BYTES
    if start is not None:
        yield start, len(memory)


def _image(pages: int, data: bytes) -> bytes:
    export = _name(MEMORY_IMPORT[1]) + b"\x02\0"
    return _module(
        [(_MEMORY, _vector([_limits(pages)])), (_EXPORT, _vector([export])), (_DATA, data)]
    )


def _module(sections: list[tuple[int, bytes]]) -> bytes:
    parts = [_MAGIC]
    for id, payload in sections:
        parts += (bytes((id,)), _unsigned(len(payload)), payload)
    return b"".join(parts)


def _vector(items: list[bytes]) -> bytes:
    return _unsigned(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    return _unsigned(len(text)) + text.encode("ascii")


def _limits(pages: int) -> bytes:
    return b"\0" + _unsigned(pages)


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def _signed(offset: int) -> bytes:
    """Return an address as the signed LEB128 that i32.const wants."""
    value = offset - (1 << 32) if offset >= 1 << 31 else offset
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        if (value == 0 and not byte & 0x40) or (value == -1 and byte & 0x40):
            out.append(byte)
            return bytes(out)
        out.append(byte | 0x80)
