"""Calls between two processes over one socket, both ways, many at a time."""

import asyncio
import contextlib
import itertools
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from belem.bindings.aiokv import StoreError
from belem.runtime.server.fleet.errors import (
    ChannelBroken,
    HostLost,
    HostSilent,
    RemoteFault,
    error_from_wire,
    error_to_wire,
)
from belem.runtime.server.fleet.frames import (
    PAYLOAD_LIMIT_BYTES,
    Frame,
    encode_frame,
    read_frame,
)
from belem.sdk import BelemError, Json

__all__ = ["Answer", "Call", "Channel", "Handler", "open_channel"]

_READER_LIMIT_BYTES: Final = 256 * 1024
_OFFER_LIMIT_BYTES: Final = 1024 * 1024

_log: Final = logging.getLogger("belem.fleet")


@dataclass(frozen=True, slots=True)
class Call:
    """What the other process asks for."""

    method: str
    values: Mapping[str, Json]
    payload: bytes = b""

    def text(self, name: str) -> str:
        """Return a value that must be text."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise ChannelBroken(f"{self.method} came with {name} {value!r}; it must be text.")
        return value

    def texts(self, name: str) -> Sequence[str]:
        """Return a value that must be a list of texts."""
        value = self.values.get(name)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ChannelBroken(f"{self.method} came with {name} {value!r}; it must be a list.")
        texts = [entry for entry in value if isinstance(entry, str)]
        if len(texts) != len(value):
            raise ChannelBroken(f"{self.method} came with {name} that are not all texts.")
        return texts


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call brought."""

    values: Mapping[str, Json] = field(default_factory=dict[str, Json])
    payload: bytes = b""


Handler = Callable[[Call], Awaitable[Answer]]


class Channel:
    """One end of a socket between two processes.

    The calls of one side begin in the order in which they were made, and run side by side: a
    handler that needs turns takes a lock. At most `concurrency` run at a time; after that nothing
    is read, so the other side waits.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handler: Handler,
        *,
        concurrency: int,
        payload_limit_bytes: int,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._payload_limit_bytes = payload_limit_bytes
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._handling: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(concurrency)
        self._sending = asyncio.Lock()
        self.closed = asyncio.Event()

    async def call(
        self,
        method: str,
        values: Mapping[str, Json] | None = None,
        payload: bytes = b"",
        *,
        timeout_seconds: float,
    ) -> Answer:
        """Ask, and return the answer; raise what the other side raised."""
        if self.closed.is_set():
            raise HostLost("The host process has ended.")
        number = next(self._numbers)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        message: Mapping[str, Json] = {"call": number, "method": method, "values": values or {}}
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._send(Frame(message, payload))
                return await answer
        except TimeoutError as error:
            raise HostSilent(
                f"The host process did not answer {method} within {timeout_seconds:g} seconds."
            ) from error
        finally:
            del self._waiting[number]

    def offer(self, method: str, values: Mapping[str, Json]) -> bool:
        """Tell without an answer; return False when the other side reads too slowly to be told."""
        full = self._writer.transport.get_write_buffer_size() > _OFFER_LIMIT_BYTES
        if self.closed.is_set() or full:
            return False
        self._writer.write(encode_frame(Frame({"method": method, "values": values})))
        return True

    async def run(self) -> None:
        """Take in what comes until the other side closes or breaks the rules."""
        try:
            while (frame := await read_frame(self._reader, self._payload_limit_bytes)) is not None:
                await self._take(frame)
        except ChannelBroken as error:
            _log.error("channel_broken", extra={"error": error.message})
        finally:
            self.closed.set()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(HostLost("The host process ended before it answered."))
            for task in self._handling:
                task.cancel()
            self._writer.close()

    async def _take(self, frame: Frame) -> None:
        message = frame.message
        number = message.get("answer")
        if isinstance(number, int):
            self._settle(number, frame)
            return
        method, values = message.get("method"), message.get("values")
        if not isinstance(method, str) or not isinstance(values, Mapping):
            raise ChannelBroken("A call came without a method or values.")
        await self._places.acquire()
        task = asyncio.create_task(
            self._handle(message.get("call"), Call(method, values, frame.payload))
        )
        self._handling.add(task)
        task.add_done_callback(self._handled)

    def _handled(self, task: asyncio.Task[None]) -> None:
        self._handling.discard(task)
        self._places.release()

    async def _handle(self, number: Json, call: Call) -> None:
        failure: BelemError | StoreError | None = None
        answer = Answer()
        try:
            answer = await self._handler(call)
        except (BelemError, StoreError) as error:
            failure = error
        except Exception as error:  # the boundary of a call: the process goes on
            _log.exception("call_failed", extra={"method": call.method})
            failure = RemoteFault(f"{call.method} failed: {type(error).__name__}")
        if number is None:
            return
        with contextlib.suppress(HostLost):  # nobody waits any more
            if failure is None:
                try:
                    message: Mapping[str, Json] = {"answer": number, "values": answer.values}
                    return await self._send(Frame(message, answer.payload))
                except ChannelBroken as error:  # too big to be sent
                    failure = error
            await self._send(Frame({"answer": number, "error": error_to_wire(failure)}))

    def _settle(self, number: int, frame: Frame) -> None:
        waiting = self._waiting.get(number)
        if waiting is None or waiting.done():
            return  # given up on
        error, values = frame.message.get("error"), frame.message.get("values")
        if error is not None:
            waiting.set_exception(error_from_wire(error))
        elif isinstance(values, Mapping):
            waiting.set_result(Answer(values, frame.payload))
        else:
            raise ChannelBroken("An answer came without values.")

    async def _send(self, frame: Frame) -> None:
        data = encode_frame(frame)
        # In turns, so that no more than one frame waits for a side that does not read.
        async with self._sending:
            try:
                self._writer.write(data)
                await self._writer.drain()
            except ConnectionError as error:
                raise HostLost("The host process has ended.") from error


@contextlib.asynccontextmanager
async def open_channel(
    sock: socket.socket,
    handler: Handler,
    *,
    concurrency: int = 64,
    payload_limit_bytes: int = PAYLOAD_LIMIT_BYTES,
) -> AsyncGenerator[Channel, None]:
    """Speak over `sock`, which this closes, for the length of the block."""
    sock.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=sock, limit=_READER_LIMIT_BYTES)
    channel = Channel(
        reader,
        writer,
        handler,
        concurrency=concurrency,
        payload_limit_bytes=payload_limit_bytes,
    )
    running = asyncio.create_task(channel.run())
    try:
        yield channel
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        writer.transport.abort()  # what the other side has not read by now, it never will
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
