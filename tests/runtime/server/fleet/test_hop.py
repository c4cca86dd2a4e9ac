import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from belem.isolates import IsolateLost
from belem.runtime.server.errors import BodyTooLarge, WorkerUnavailable
from belem.runtime.server.fleet.hop import Hop, HopRequest

Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

HEAD = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
GET = HopRequest(HEAD, None, chunked=False, is_head=False)
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Peer:
    """A host process's server, played by a test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answer: Answering = answer_all(OK)
        self.connections = 0
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self.answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.left.set()
            writer.close()


def answer_all(response: bytes) -> Answering:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(response)

    return answer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    with tempfile.TemporaryDirectory(prefix="hop-") as folder:  # a socket's path has to be short
        made = Peer(Path(folder) / "s")
        async with await asyncio.start_unix_server(made.serve, made.path):
            yield made


@pytest.fixture
async def hop(peer: Peer) -> AsyncIterator[Hop]:
    made = Hop(peer.path, connections=2)
    yield made
    made.close()


async def ask(hop: Hop, request: HopRequest = GET) -> tuple[int, bytes]:
    async with hop.send(request) as response:
        return response.status, b"".join([chunk async for chunk in response.body()])


async def test_a_connection_serves_one_request_after_another(peer: Peer, hop: Hop) -> None:
    answers = [await ask(hop) for _ in range(3)]

    assert answers == [(200, b"hi")] * 3
    assert peer.connections == 1


async def test_a_chunked_response_is_read_as_it_comes(peer: Peer, hop: Hop) -> None:
    more = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        await more.wait()
        writer.write(b"1\r\nb\r\n0\r\n\r\n")

    peer.answer = answer
    async with hop.send(GET) as response:
        body = response.body()
        first = await anext(body)
        more.set()
        rest = [chunk async for chunk in body]

    assert (first, rest) == (b"a", [b"b"])


async def test_the_response_is_read_while_the_request_is_sent(peer: Peer, hop: Hop) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            line = await reader.readuntil(b"\r\n")
            chunk = await reader.readexactly(int(line, 16) + 2)
            writer.write(line + chunk)
            await writer.drain()
            if line == b"0\r\n":
                return

    answered = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"first"
        await answered.wait()  # a half-duplex client would wait for ever
        for _ in range(64):
            yield b"x" * 65_536

    peer.answer = answer
    request = HopRequest(HEAD, body(), chunked=True, is_head=False)
    received = 0
    async with hop.send(request) as response:
        async for chunk in response.body():
            answered.set()
            received += len(chunk)

    assert received == 5 + 64 * 65_536


async def test_head_has_a_length_and_no_body(peer: Peer, hop: Hop) -> None:
    peer.answer = answer_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")
    request = HopRequest(HEAD, None, chunked=False, is_head=True)

    answers = [await ask(hop, request), await ask(hop, request)]

    assert answers == [(200, b""), (200, b"")]
    assert peer.connections == 1


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nconte",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi",
        b"NOT HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 120_000 + b"\r\n",
    ],
)
async def test_a_process_that_ends_or_talks_nonsense_is_lost(
    peer: Peer, hop: Hop, response: bytes
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response)

    peer.answer = answer

    with pytest.raises(IsolateLost):
        await ask(hop)


async def test_nobody_there_is_lost_too() -> None:
    with pytest.raises(IsolateLost):
        await ask(Hop(Path("/nowhere/s")))


async def test_leaving_early_closes_the_connection(peer: Peer, hop: Hop) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        await reader.read()

    peer.answer = answer
    async with hop.send(GET) as response:
        await anext(response.body())

    await asyncio.wait_for(peer.left.wait(), 5)


async def test_what_is_wrong_with_the_body_is_raised(peer: Peer, hop: Hop) -> None:
    async def answer(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        raise BodyTooLarge("The body is over the limit of 1 bytes.")

    peer.answer = answer

    with pytest.raises(BodyTooLarge):
        await ask(hop, HopRequest(HEAD, body(), chunked=True, is_head=False))
    await asyncio.wait_for(peer.left.wait(), 5)


async def test_an_answer_before_the_body_is_read_ends_the_connection(peer: Peer, hop: Hop) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    answer = await ask(hop, HopRequest(HEAD, body(), chunked=True, is_head=False))
    again = await ask(hop)

    assert answer == again == (200, b"hi")
    assert peer.connections == 2


async def test_more_requests_than_connections_are_refused(peer: Peer, hop: Hop) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        await reader.read()

    peer.answer = answer
    async with hop.send(GET), hop.send(GET):
        with pytest.raises(WorkerUnavailable, match="has 2 requests in flight; the limit is 2"):
            await ask(hop)

    peer.answer = answer_all(OK)
    assert await ask(hop) == (200, b"hi")
