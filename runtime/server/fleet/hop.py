"""The hop from a front to a host process: HTTP/1.1 over a Unix socket, both ways at once.

The client libraries at hand send a whole request before they read of its response: a worker that
passes a large body through would wait for its reader for ever. So this is a small client of its
own, around the parser that the server uses. It knows nothing but a peer of the same release.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httptools

from belem.isolates import IsolateLost
from belem.runtime.server.errors import WorkerUnavailable

__all__ = ["Hop", "HopRequest", "HopResponse"]

_CONNECT_SECONDS: Final = 5.0
_READ_BYTES: Final = 64 * 1024
_HEAD_LIMIT_BYTES: Final = 512 * 1024  # of a response; its server allows less
_IDLE_CONNECTIONS: Final = 32
# Less than the other side keeps an idle connection, so that none is used while it is being closed.
_IDLE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class HopRequest:
    """A request with its head as it is sent, but for the end of it."""

    head: bytes
    body: bytes | AsyncIterator[bytes] | None
    chunked: bool  # how the body is framed: in chunks, or by a Content-Length in the head
    is_head: bool


class Hop:
    """The connections to one host process. A connection serves one request at a time."""

    def __init__(self, path: Path, *, connections: int = 1024) -> None:
        self._path = path
        self._limit = connections
        self._open = 0
        self._idle: deque[_Connection] = deque()
        self._closed = False

    @contextlib.asynccontextmanager
    async def send(self, request: HopRequest) -> AsyncGenerator["HopResponse", None]:
        """Send a request; the block starts when the head of its response is there.

        Leaving the block before the response is read tells the other side that nobody waits for it.
        """
        connection = await self._connection()
        try:
            response = HopResponse(connection, request)
            try:
                await response.begin()
                yield response
            finally:
                await response.end()
        finally:
            if connection.reusable and not self._closed and len(self._idle) < _IDLE_CONNECTIONS:
                connection.idle_since_s = asyncio.get_running_loop().time()
                self._idle.append(connection)
            else:
                self._drop(connection)

    def close(self) -> None:
        """Close the idle connections, and the others when their requests are over."""
        self._closed = True
        while self._idle:
            self._drop(self._idle.pop())

    async def _connection(self) -> "_Connection":
        oldest_s = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while self._idle and self._idle[0].idle_since_s < oldest_s:
            self._drop(self._idle.popleft())
        while self._idle:
            connection = self._idle.pop()
            if connection.alive:
                return connection
            self._drop(connection)
        if self._open >= self._limit:
            raise WorkerUnavailable(
                f"The worker has {self._open} requests in flight; the limit is {self._limit}."
            )
        self._open += 1
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_unix_connection(
                    str(self._path), limit=_READ_BYTES
                )
        except (OSError, TimeoutError) as error:
            self._open -= 1
            raise _lost() from error
        except BaseException:
            self._open -= 1
            raise
        return _Connection(reader, writer)

    def _drop(self, connection: "_Connection") -> None:
        self._open -= 1
        connection.writer.transport.abort()


class _Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.reusable = False
        self.idle_since_s = 0.0

    @property
    def alive(self) -> bool:
        return not self.reader.at_eof() and not self.writer.transport.is_closing()


class HopResponse:
    """A response whose body is read as it comes. It is its parser's protocol, too."""

    def __init__(self, connection: _Connection, request: HopRequest) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._connection = connection
        self._request = request
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: deque[bytes] = deque()
        self._headed = False
        self._complete = False
        self._keep_alive = False
        self._sending: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Send the request, and return when the response's head has come."""
        connection, request = self._connection, self._request
        connection.reusable = False
        writer = connection.writer
        body = request.body
        writer.write(request.head)
        if isinstance(body, bytes):
            writer.write(body)
        elif body is not None:
            self._sending = asyncio.create_task(self._send(body))
        received_bytes = 0
        while not self._headed:
            received_bytes += await self._receive()
            if received_bytes > _HEAD_LIMIT_BYTES:
                raise _lost()

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body."""
        while True:
            while self._chunks:
                yield self._chunks.popleft()
            if self._complete:
                return
            await self._receive()

    async def end(self) -> None:
        """Stop to send; keep the connection if the exchange is whole."""
        sending = self._sending
        whole = self._complete and (sending is None or sending.done())
        if sending is not None:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        self._connection.reusable = whole and self._keep_alive and self._connection.alive

    # The parser's callbacks

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; trailers are dropped."""
        if not self._headed:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Take the head as whole."""
        self.status = self._parser.get_status_code()
        self._keep_alive = self._parser.should_keep_alive()  # not known any more after the body
        self._headed = True
        if self._request.is_head:  # the parser does not know that no body follows
            self._complete = True

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body."""
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        """Take the response as whole."""
        self._complete = True

    async def _receive(self) -> int:
        """Feed the parser once; raise what kept the request from being sent."""
        try:
            data = await self._read()
        except OSError as error:
            raise _lost() from error
        if not data:
            raise _lost()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise _lost() from error
        return len(data)

    async def _read(self) -> bytes:
        sending = self._sending
        if sending is None:
            return await self._connection.reader.read(_READ_BYTES)
        reading = asyncio.create_task(self._connection.reader.read(_READ_BYTES))
        try:
            if not sending.done():
                await asyncio.wait({reading, sending}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                self._sending = None
                await sending  # raises what was wrong with the body
            return await reading
        finally:
            reading.cancel()

    async def _send(self, body: AsyncIterator[bytes]) -> None:
        writer = self._connection.writer
        try:
            async for chunk in body:
                if not chunk:
                    continue
                writer.write(
                    b"%x\r\n%s\r\n" % (len(chunk), chunk) if self._request.chunked else chunk
                )
                await writer.drain()
            if self._request.chunked:
                writer.write(b"0\r\n\r\n")
        except ConnectionError:
            return  # the other side reads no more: what it answers says why


def _lost() -> IsolateLost:
    return IsolateLost("host process", "the connection to it ended")
