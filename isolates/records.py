"""Records as bytes: inboxes are packed here, outboxes are checked here.

An outbox was written by a guest that may be hostile: its kinds, types and lengths are checked
before anything is done with them, and JSON is parsed with its size, depth and constants bounded.
"""

import json
from collections.abc import Mapping
from typing import Final, NoReturn, cast

from belem.sdk.abi import RECORD, ToHost, Type
from belem.sdk.ops import Json

__all__ = [
    "ProtocolBreach",
    "Record",
    "join",
    "json_bytes",
    "pack",
    "parse",
    "parse_some",
    "read_json",
    "split",
]

Record = tuple[int, int, int, bytes]  # kind, id, type, payload

_HEADER_BYTES: Final = RECORD.size
_PADDING: Final = (b"", b"\0", b"\0\0", b"\0\0\0")
_pack_header: Final = RECORD.pack
_unpack_header: Final = RECORD.unpack_from


class ProtocolBreach(Exception):
    """The guest wrote something that the ABI does not allow."""


def pack(kind: int, id: int, type: int, payload: bytes = b"") -> bytes:
    """Return one record, padded."""
    length = len(payload)
    return _pack_header(kind, id, type, length) + payload + _PADDING[-length & 3]


def join(first: bytes, second: bytes) -> bytes:
    """Return an X_AND_BYTES payload (X_AND_STREAM, if `second` is a stream's id)."""
    return len(first).to_bytes(4, "little") + first + second


def split(payload: bytes) -> tuple[bytes, bytes]:
    """Undo `join`."""
    if len(payload) < 4:
        raise ProtocolBreach(f"a two-part payload of {len(payload)} bytes")
    end = 4 + int.from_bytes(payload[:4], "little")
    if end > len(payload):
        raise ProtocolBreach(f"a first part of {end - 4} bytes in a payload of {len(payload)}")
    return payload[4:end], payload[end:]


def parse(outbox: bytes) -> list[Record]:
    """Return the records of an outbox, or raise `ProtocolBreach`."""
    return parse_some(outbox, 0, len(outbox))[0]


def parse_some(outbox: bytes, offset: int, most: int) -> tuple[list[Record], int]:
    """Return up to `most` records from an offset on, and where the next one begins."""
    records: list[Record] = []
    total = len(outbox)
    while offset < total and len(records) < most:
        if total - offset < _HEADER_BYTES:
            raise ProtocolBreach(f"{total - offset} bytes after the last record")
        kind, id, type, length = _unpack_header(outbox, offset)
        offset += _HEADER_BYTES
        if kind >= _KINDS or not _ALLOWED[kind] >> min(type, 31) & 1:
            raise ProtocolBreach(f"a record of kind {kind} with a payload of type {type}")
        end = offset + length
        if end > total:
            raise ProtocolBreach(f"a payload of {length} bytes with {total - offset} left")
        records.append((kind, id, type, outbox[offset:end]))
        offset = (end + 3) & ~3
    return records, offset


def json_bytes(value: Json) -> bytes:
    """Return JSON as UTF-8; raise TypeError or ValueError for what JSON cannot hold."""
    try:
        return _encode_text(value).encode()
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 has no bytes for: escape it
        return _encode_ascii(value).encode()


def read_json(payload: bytes, limit_bytes: int) -> Json:
    """Return the JSON a guest wrote, or raise `ProtocolBreach`."""
    if len(payload) > limit_bytes:
        raise ProtocolBreach(f"JSON of {len(payload)} bytes; the limit is {limit_bytes}")
    try:
        return cast(Json, _decode(payload.decode("utf-8", "replace")))
    except (ValueError, RecursionError) as error:
        raise ProtocolBreach(f"JSON that cannot be read: {type(error).__name__}") from error


def read_object(payload: bytes, limit_bytes: int) -> Mapping[str, Json]:
    """Return the JSON object a guest wrote, or raise `ProtocolBreach`."""
    value = read_json(payload, limit_bytes)
    if not isinstance(value, Mapping):
        raise ProtocolBreach("JSON that is not an object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_encode_text = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=True
).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def _mask(*types: Type) -> int:
    return sum(1 << type for type in types)


_BODIES: Final = (Type.TEXT, Type.TEXT_AND_BYTES, Type.TEXT_AND_STREAM)
_TYPES: Final = {
    ToHost.FAULT: _mask(Type.JSON),
    ToHost.LOG: _mask(Type.JSON),
    ToHost.REPLY: _mask(*_BODIES),
    ToHost.CHUNK: _mask(Type.BYTES, Type.TEXT),
    ToHost.END: _mask(Type.NONE),
    ToHost.FAIL: _mask(Type.JSON),
    ToHost.THROW: _mask(Type.JSON),
    ToHost.SETTLED: _mask(Type.NONE),
    ToHost.ACK: _mask(Type.JSON),
    ToHost.STOP: _mask(Type.NONE),
    ToHost.CANCEL: _mask(Type.NONE),
    ToHost.OP: _mask(Type.JSON, Type.JSON_AND_BYTES, Type.JSON_AND_STREAM),
}
_KINDS: Final = max(ToHost) + 1
_ALLOWED: Final = tuple(_TYPES.get(cast(ToHost, kind), 0) for kind in range(_KINDS))
