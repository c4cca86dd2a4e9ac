import asyncio
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belem.runtime.server.fleet.errors import ChannelBroken
from belem.runtime.server.fleet.frames import (
    MESSAGE_LIMIT_BYTES,
    Frame,
    encode_frame,
    read_frame,
)


async def read(data: bytes, **options: int) -> Frame | None:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await read_frame(reader, **options)


@given(text=st.text(), payload=st.binary(max_size=1000))
async def test_a_frame_comes_back_as_it_was(text: str, payload: bytes) -> None:
    frame = Frame({"text": text, "many": [1, None, True]}, payload)

    assert await read(encode_frame(frame)) == frame


async def test_a_lone_surrogate_travels() -> None:
    frame = Frame({"key": "\ud800"})

    assert await read(encode_frame(frame)) == frame


@pytest.mark.parametrize("cut", [0, 3, 8, 12])
async def test_an_end_within_a_frame_is_an_end(cut: int) -> None:
    assert await read(encode_frame(Frame({"a": 1}, b"payload"))[:cut]) is None


async def test_a_message_over_the_limit_is_not_sent() -> None:
    with pytest.raises(ChannelBroken, match=f"the limit is {MESSAGE_LIMIT_BYTES}"):
        encode_frame(Frame({"text": "x" * MESSAGE_LIMIT_BYTES}))


async def test_lengths_over_the_limits_are_refused_unread() -> None:
    with pytest.raises(ChannelBroken, match="A message is 4294967295 bytes"):
        await read(struct.pack("!II", 0xFFFFFFFF, 0))
    with pytest.raises(ChannelBroken, match="A payload is 101 bytes; the limit is 100"):
        await read(struct.pack("!II", 2, 101), payload_limit_bytes=100)


@pytest.mark.parametrize("text", [b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
async def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(ChannelBroken):
        await read(struct.pack("!II", len(text), 0) + text)
