"""Bodies that stream both ways, at bounded memory, closed on every way out."""

import asyncio
import json
import resource
from collections.abc import AsyncIterator
from typing import cast

import pytest

from belem.isolates import Event, GuestHung, GuestThrew, Isolate, IsolateLost
from belem.isolates.streams import OutboundStream, read_fault
from belem.sdk.abi import GUEST_STREAM_WINDOW_BYTES, HOST_STREAM_WINDOW_BYTES
from belem.sdk.errors import SystemFault
from belem.sdk.ops import Answer, Call
from tests.isolates.conftest import Spawn

# Sends each inbound chunk back on outbound stream 9 as the window allows, and acknowledges it then.
ECHO = """
    let request, window = 0, ended = false;
    const waiting = [];
    const pump = () => {
      while (waiting.length && (window === 0 || window + waiting[0].length <= 262144)) {
        const chunk = waiting.shift();
        window += chunk.length;
        host.send(4, 9, chunk);
        host.send(9, stream, chunk.length);
      }
      if (ended && !waiting.length) { host.send(5, 9); host.send(8, request); }
    };
    let stream;
    export const echo = (head, body, id) => {
      request = id; stream = body;
      host.send(3, id, "echo", 9);
    };
    export const record = (kind, id, value) => {
      if (kind === 4) waiting.push(value);
      if (kind === 5) ended = true;
      if (kind === 8) window -= value;
      pump();
    };
"""


def body_of(reply: object) -> OutboundStream:
    body = getattr(reply, "body", None)
    assert isinstance(body, OutboundStream)
    return body


class Source:
    """A body that counts what was taken from it and knows whether it was closed."""

    def __init__(self, chunk: bytes, count: int) -> None:
        self.chunk = chunk
        self.left = count
        self.taken = 0
        self.closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        self.taken += len(self.chunk)
        return self.chunk

    async def aclose(self) -> None:
        self.closed = True


async def test_twenty_megabytes_go_through_at_bounded_memory(spawn: Spawn) -> None:
    isolate = await spawn(ECHO, memory_bytes=24 << 20)
    source = Source(bytes(range(256)) * 256, 320)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    reply = await isolate.dispatch(Event("echo", body=source))
    received, furthest = 0, 0
    async for chunk in body_of(reply):
        received += len(chunk)
        furthest = max(furthest, source.taken - received)
    await reply.settled()

    assert received == 20 << 20
    assert furthest <= 2 * (GUEST_STREAM_WINDOW_BYTES + HOST_STREAM_WINDOW_BYTES)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # KiB
    assert source.closed


async def test_a_slow_reader_holds_the_source_back(spawn: Spawn) -> None:
    isolate = await spawn(ECHO)
    source = Source(bytes(64 << 10), 1000)

    reply = await isolate.dispatch(Event("echo", body=source))
    for _ in range(200):
        await asyncio.sleep(0)

    assert source.taken <= GUEST_STREAM_WINDOW_BYTES + HOST_STREAM_WINDOW_BYTES + (128 << 10)
    await reply.aclose()
    await isolate.aclose()
    assert source.closed


async def test_a_large_body_of_bytes_is_streamed(spawn: Spawn) -> None:
    isolate = await spawn(ECHO)

    reply = await isolate.dispatch(Event("echo", body=bytes(1 << 20)))

    assert sum([len(chunk) async for chunk in body_of(reply)]) == 1 << 20


async def test_a_chunk_larger_than_the_window_passes(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const big = (head, body, id) => {
          host.send(3, id, "", 1);
          host.send(4, 1, new Uint8Array(1000000));
        };
        export const record = (kind, id, value) => {
          if (kind !== 8 || value !== 1000000) return;
          host.send(4, 1, "end"); host.send(5, 1); host.send(8, 1);
        };
    """)

    reply = await isolate.dispatch(Event("big"))

    assert len(b"".join([chunk async for chunk in body_of(reply)])) == 1_000_003


async def test_a_guest_that_ignores_its_window_is_discarded(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const flood = (head, body, id) => {
          host.send(3, id, "", 1);
          for (let i = 0; i < 10; i++) host.send(4, 1, new Uint8Array(100000));
        };
    """)

    reply = await isolate.dispatch(Event("flood"))

    assert isinstance(isolate.dead, IsolateLost)
    assert isolate.dead.reason == "protocol"
    with pytest.raises(IsolateLost):
        async for _ in body_of(reply):
            pass


async def test_a_source_that_fails_fails_the_guests_stream(spawn: Spawn) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"first"
        raise SystemFault("the client left")

    isolate = await spawn("""
        let request; const seen = [];
        export const read = (head, body, id) => { request = id; };
        export const record = (kind, id, value) => {
          seen.push(kind === 6 ? value.message : kind);
          if (kind === 6) { host.send(3, request, seen.join()); host.send(8, request); }
        };
    """)

    reply = await isolate.dispatch(Event("read", body=broken()))

    assert reply.head == "4,the client left"


async def test_a_source_is_closed_when_the_guest_stops_reading(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const stop = async (head, body, id) => {
          host.send(10, body);
          await sleep(20);
          host.send(3, id, ""); host.send(8, id);
        };
    """)
    source = Source(b"x" * 1000, 10_000)

    await isolate.dispatch(Event("stop", body=source))

    assert source.closed
    assert source.left > 0


async def test_a_source_that_never_waits_is_left_when_the_guest_stops(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const stop = async (head, body, id) => {
          host.send(10, body);
          await sleep(5);
          host.send(3, id, ""); host.send(8, id);
        };
    """)
    endless = Source(b"x", -1)

    await isolate.dispatch(Event("stop", body=endless))

    assert endless.closed


async def test_a_source_is_closed_when_its_request_settles_unread(spawn: Spawn) -> None:
    isolate = await spawn("export const ignore = () => 'no thanks';")
    source = Source(bytes(64 << 10), 1000)

    reply = await isolate.dispatch(Event("ignore", body=source))
    await reply.settled()
    await isolate.aclose()

    assert source.closed
    assert source.left > 0


async def test_a_reader_that_leaves_stops_the_guests_stream(spawn: Spawn) -> None:
    isolate = await spawn("""
        let request;
        export const begin = (head, body, id) => {
          request = id; host.send(3, id, "", 4); host.send(4, 4, "chunk"); sleep(60000);
        };
        const seen = [];
        export const record = (kind, id) => { seen.push(`${kind}:${id}`); host.send(8, request); };
        export const report = () => seen.join();
    """)
    reply = await isolate.dispatch(Event("begin"))

    await body_of(reply).aclose()
    await reply.settled()

    assert (await isolate.dispatch(Event("report"))).head == "9:4"


async def test_a_stream_that_fails_in_the_guest_raises_after_what_came_before(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const fail = (head, body, id) => {
          host.send(3, id, "", 1);
          host.send(4, 1, "before");
          host.send(6, 1, { name: "RangeError", message: "torn", stack: "" });
          host.send(8, id);
        };
    """)

    body = body_of(await isolate.dispatch(Event("fail")))

    assert await anext(body) == b"before"
    with pytest.raises(GuestThrew, match="torn"):
        await anext(body)


async def test_a_stream_that_nothing_can_continue_is_hung(spawn: Spawn) -> None:
    isolate = await spawn("""
        export const begin = (head, body, id) => { host.send(3, id, "", 1); host.send(4, 1, "a"); };
    """)

    body = body_of(await isolate.dispatch(Event("begin")))

    assert await anext(body) == b"a"
    with pytest.raises(GuestHung):
        await anext(body)


async def test_an_unread_inbound_stream_does_not_hide_a_hung_request(spawn: Spawn) -> None:
    isolate = await spawn("export const hang = () => new Promise(() => {});")

    with pytest.raises(GuestHung):
        await isolate.dispatch(Event("hang", body=Source(bytes(100_000), 50)))


async def test_the_end_of_an_isolate_ends_its_streams(spawn: Spawn) -> None:
    isolate: Isolate = await spawn(ECHO)
    source = Source(bytes(1000), 10**6)
    reply = await isolate.dispatch(Event("echo", body=source))
    await anext(body_of(reply))

    await isolate.aclose()

    with pytest.raises(IsolateLost):
        async for _ in body_of(reply):
            pass
    assert source.closed


async def test_one_stream_too_many_is_an_error_and_no_more(spawn: Spawn) -> None:
    stopped: list[int] = []

    async def hold(call: Call) -> Answer:
        if call.method == "stopped":
            stopped.append(cast(int, call.args))
            return Answer()
        await asyncio.get_running_loop().create_future()
        return Answer()

    isolate = await spawn(
        """
        export const record = (kind, id) => host.op(["hold", "stopped", id]);
        const hold = (stream) => host.op(["hold", "it", []], stream);
        export const keep = () => Promise.all([hold(1), hold(2)]);
        export const ask = () => hold(3).catch((error) => error.message);
        export const reply = (head, body, id) => { host.send(3, id, "", 4); host.send(8, id); };
        """,
        {"hold": hold},
        max_streams=2,
    )

    keeping = asyncio.ensure_future(isolate.dispatch(Event("keep")))
    await asyncio.sleep(0)

    reply = await isolate.dispatch(Event("ask"))

    assert reply.head == "Too many streams are open; the limit is 2."
    with pytest.raises(GuestThrew, match="Too many streams are open; the limit is 2"):
        await isolate.dispatch(Event("reply"))
    assert isolate.dead is None
    assert 3 in stopped
    keeping.cancel()
    await isolate.aclose()


def test_a_stack_is_cut_with_a_note() -> None:
    fault = {"name": "Error", "message": "m" * 20_000, "stack": "s" * 100_000}

    error = read_fault(json.dumps(fault).encode())

    assert error.stack == "s" * 16_384 + "\n… (83616 characters more)"
    assert error.text == "m" * 16_384 + "\n… (3616 characters more)"
