"""Messages between processes: a JSON object and perhaps bytes, each behind its length."""

import asyncio
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from belem.runtime.server.fleet.errors import ChannelBroken
from belem.sdk import Json

__all__ = ["MESSAGE_LIMIT_BYTES", "PAYLOAD_LIMIT_BYTES", "Frame", "encode_frame", "read_frame"]

MESSAGE_LIMIT_BYTES: Final = 4 * 1024 * 1024
# An upload's 64 MiB of modules as JSON, most of them escaped little.
PAYLOAD_LIMIT_BYTES: Final = 128 * 1024 * 1024

_LENGTHS: Final = struct.Struct("!II")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message as it travels."""

    message: Mapping[str, Json]
    payload: bytes = b""


def encode_frame(frame: Frame) -> bytes:
    """Return the frame's bytes; raise `ChannelBroken` if it is over a limit."""
    message = json.dumps(frame.message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    _check(len(message), len(frame.payload))
    return b"%s%s%s" % (_LENGTHS.pack(len(message), len(frame.payload)), message, frame.payload)


async def read_frame(
    reader: asyncio.StreamReader, payload_limit_bytes: int = PAYLOAD_LIMIT_BYTES
) -> Frame | None:
    """Return the next frame, or None when the other side has closed."""
    try:
        message_bytes, payload_bytes = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
        _check(message_bytes, payload_bytes, payload_limit_bytes)
        text = await reader.readexactly(message_bytes)
        payload = await reader.readexactly(payload_bytes) if payload_bytes else b""
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    try:
        message = cast(Json, json.loads(text.decode("utf-8", "surrogatepass")))
    except (ValueError, RecursionError) as error:
        raise ChannelBroken(f"A message of {message_bytes} bytes is not JSON: {error}") from error
    if not isinstance(message, Mapping):
        raise ChannelBroken("A message is no JSON object.")
    return Frame(message, payload)


def _check(
    message_bytes: int, payload_bytes: int, payload_limit_bytes: int = PAYLOAD_LIMIT_BYTES
) -> None:
    if message_bytes > MESSAGE_LIMIT_BYTES:
        raise ChannelBroken(
            f"A message is {message_bytes} bytes; the limit is {MESSAGE_LIMIT_BYTES}."
        )
    if payload_bytes > payload_limit_bytes:
        raise ChannelBroken(
            f"A payload is {payload_bytes} bytes; the limit is {payload_limit_bytes}."
        )
