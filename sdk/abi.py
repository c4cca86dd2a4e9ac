"""What host and guest agree on: record kinds, payload types, the layout (docs/rfd/0002).

A batch of records crosses the boundary in each direction. A record is four little-endian u32 words
`kind, id, type, length`, then `length` bytes of payload, padded with zeros to a multiple of four.
The JavaScript twin of these numbers is `isolates/guests/js/boot/abi.js`; a test keeps them equal.
"""

import struct
from enum import IntEnum
from typing import Final

__all__ = [
    "GUEST_STREAM_WINDOW_BYTES",
    "HOST_STREAM_WINDOW_BYTES",
    "RECORD",
    "ToGuest",
    "ToHost",
    "Type",
]

RECORD: Final = struct.Struct("<IIII")

# Flow control: a sender may have this many unacknowledged bytes in flight on one stream.
GUEST_STREAM_WINDOW_BYTES: Final = 256 * 1024  # host -> guest
HOST_STREAM_WINDOW_BYTES: Final = 256 * 1024  # guest -> host


class Type(IntEnum):
    """How the bytes of a payload are read."""

    NONE = 0  # no payload: undefined
    TEXT = 1  # UTF-8
    BYTES = 2  # raw bytes, a Uint8Array in JavaScript
    JSON = 3  # one JSON value, UTF-8
    JSON_AND_BYTES = 4  # u32 length of the JSON, the JSON, then raw bytes to the end
    TEXT_AND_BYTES = 5  # u32 length of the text, the text, then raw bytes to the end
    JSON_AND_STREAM = 6  # u32 length of the JSON, the JSON, then a u32 stream id
    TEXT_AND_STREAM = 7  # u32 length of the text, the text, then a u32 stream id


class ToGuest(IntEnum):
    """Kinds of record that the host sends."""

    EVENT = 1  # id: request. TEXT…: "<event>\n<head>", and the body if any
    RESOLVE = 2  # id: op. JSON, JSON_AND_BYTES or JSON_AND_STREAM
    REJECT = 3  # id: op. JSON {name, message, properties} becomes an Error of that name
    CHUNK = 4  # id: inbound stream. BYTES
    END = 5  # id: inbound stream. No payload
    FAIL = 6  # id: inbound stream. JSON {name, message}: the stream errors
    CANCEL = 7  # id: request. The client went away: abort its signal, cancel its response stream
    ACK = 8  # id: outbound stream. JSON number: bytes that the host has consumed
    STOP = 9  # id: outbound stream. The reader is gone: cancel the stream
    SEED = 10  # id: 0. BYTES: 32 of entropy, before all else in a memory that was restored


class ToHost(IntEnum):
    """Kinds of record that the guest sends."""

    FAULT = 1  # id: request or 0. JSON {name, message, stack}: uncaught outside a handler's promise
    LOG = 2  # id: request or 0. JSON {level, text}
    REPLY = 3  # id: request. TEXT…: the head, and the body if any
    CHUNK = 4  # id: outbound stream. BYTES or TEXT
    END = 5  # id: outbound stream
    FAIL = 6  # id: outbound stream. JSON {name, message, stack}
    THROW = 7  # id: request. JSON {name, message, stack, pass_through}: the handler threw
    SETTLED = 8  # id: request. Reply and waitUntil promises are over: the host may forget the id
    ACK = 9  # id: inbound stream. JSON number: bytes that the guest has consumed
    STOP = 10  # id: inbound stream. The guest will read no more of it
    CANCEL = 11  # id: op. Its result is not wanted; the host still resolves or rejects the op
    OP = 12  # id: op. JSON…: [capability, method, args, request], and the body if any
