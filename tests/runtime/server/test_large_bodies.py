"""Bodies far larger than any memory that is there for them."""

import asyncio
import re
from pathlib import Path

from belem.runtime.server import Composer, Dispatch, LiveWorker, RequestLimits, Route, bind, serving
from tests.runtime.server.conftest import Build

GIB = 1 << 30
PIECE = bytes(range(256)) * 1024
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"


def peak_resident_mib() -> float:
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


async def send(writer: asyncio.StreamWriter, size: int) -> None:
    writer.write(HEAD % size)
    for _ in range(size // len(PIECE)):
        writer.write(PIECE)
        await writer.drain()


async def test_a_gibibyte_passes_through_in_constant_memory(
    composer: Composer, build: Build
) -> None:
    revision = await build("return new Response(request.body)", cpu_ms=60_000)
    worker = LiveWorker("hello", composer.host, revision, log=lambda line: None)
    limits = RequestLimits(body_bytes=2 * GIB)
    dispatch = Dispatch(
        lambda host, path: Route(worker), on_request=lambda event: None, limits=limits
    )
    listener = bind("127.0.0.1", 0)
    async with worker, serving(dispatch, listener, drain_seconds=1):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        forget_peak()
        before_mib = peak_resident_mib()

        sending = asyncio.create_task(send(writer, GIB))
        head = await reader.readuntil(b"\r\n\r\n")
        received = 0
        while data := await reader.read(1 << 20):
            received += len(data)
        await sending
        writer.close()

    assert head.startswith(b"HTTP/1.1 200 ")
    # In chunks, whose frames come on top.
    assert GIB < received < GIB + GIB // 100
    assert peak_resident_mib() - before_mib < 48


async def test_a_reader_that_stops_stops_the_sender(composer: Composer, build: Build) -> None:
    revision = await build("return new Response(request.body)")
    worker = LiveWorker("hello", composer.host, revision, log=lambda line: None)
    listener = bind("127.0.0.1", 0)
    dispatch = Dispatch(lambda host, path: Route(worker), on_request=lambda event: None)
    async with worker, serving(dispatch, listener, drain_seconds=1):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1 << 16)
        sent = 0
        writer.write(HEAD % (90 << 20))
        try:
            while sent < 90 << 20:
                writer.write(PIECE)
                sent += len(PIECE)
                async with asyncio.timeout(2):
                    await writer.drain()
        except TimeoutError:
            pass
        writer.transport.abort()
        reader.feed_eof()

    # What the sockets of both ways and the windows between them hold, and no more.
    assert sent < 48 << 20
