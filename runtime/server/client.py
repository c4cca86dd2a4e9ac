"""One client's side of an exchange: its body with backpressure, and the news that it went away."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any, Final

from belem.runtime.server.errors import BodyTooLarge, ClientGone, RequestTimeout
from belem.runtime.server.requests import BodyPlan, RequestLimits

__all__ = ["Client", "Message", "Receive", "Send"]

# ASGI messages are untyped dictionaries; `Client` is the one place that reads and writes them.
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_BUFFER_LIMIT_BYTES: Final = 256 * 1024

# A task that waits for the client to go away costs as much as a short request, so it is started
# only for requests that are still running after this long.
_WATCH_AFTER_SECONDS: Final = 0.02


class Client:
    """Read the request, send the response, and cancel the block when the client leaves.

    Nobody but `_pump` calls `receive` once it runs: it fills a bounded buffer with body chunks
    and, behind the last one, learns of the disconnect. A client whose body is not being read by
    the guest is noticed only when the buffer empties, as with any server that applies
    backpressure.
    """

    def __init__(self, receive: Receive, send: Send, limits: RequestLimits) -> None:
        self._receive = receive
        self._send = send
        self._limits = limits
        self._chunks: deque[bytes] = deque()
        self._buffered_bytes = 0
        self._received_bytes = 0
        self._ended = False
        self._failure: BodyTooLarge | ClientGone | None = None
        self._changed = asyncio.Event()
        self._pumping: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._owner: asyncio.Task[Any] | None = None  # Any: the request task's result is not used
        self._owner_cancels = 0
        self._gone = False
        self.response_started = False

    @property
    def body_error(self) -> BodyTooLarge | None:
        """The limit that the streamed body broke, if it did."""
        return self._failure if isinstance(self._failure, BodyTooLarge) else None

    async def body(self, plan: BodyPlan) -> bytes | AsyncIterator[bytes] | None:
        """Return the body as the plan says: nothing, all of it, or an iterator over it."""
        if plan.kind == "none":
            self._ended = True
            return None
        if plan.kind == "whole":
            return await self._whole()
        return self._stream()

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the status line and the headers."""
        self.response_started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, chunk: bytes) -> None:
        """Send a piece of the body; returns when there is room for the next one."""
        try:
            async with asyncio.timeout(self._limits.write_idle_seconds):
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        except TimeoutError as error:
            raise ClientGone("The client stopped reading the response.") from error

    async def finish(self, chunk: bytes = b"") -> None:
        """Send the last piece of the body."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": False})

    async def __aenter__(self) -> None:
        self._owner = asyncio.current_task()
        assert self._owner is not None
        self._owner_cancels = self._owner.cancelling()
        if self._pumping is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_WATCH_AFTER_SECONDS, self._start_pump)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        owner, self._owner = self._owner, None
        if self._timer is not None:
            self._timer.cancel()
        if self._pumping is not None:
            self._pumping.cancel()
            await asyncio.gather(self._pumping, return_exceptions=True)
        if not self._ended:
            # The guest may go on reading the body (waitUntil), but nobody fills the buffer any
            # more.
            self._failure = ClientGone("The response ended before the body was read.")
            self._changed.set()
        # As in asyncio.timeout: swallow the cancellation only if it is ours.
        ours = self._gone and owner is not None and owner.uncancel() <= self._owner_cancels
        if ours and kind is asyncio.CancelledError:
            raise ClientGone("The client closed the connection.") from error

    def _start_pump(self) -> None:
        if self._pumping is None:
            self._pumping = asyncio.create_task(self._pump())

    async def _whole(self) -> bytes:
        pieces: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.body_idle_seconds):
                while not self._ended:
                    pieces.append(await self._next_piece())
        except TimeoutError as error:
            raise _too_slow(self._limits) from error
        return b"".join(pieces)

    async def _next_piece(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone("The client closed the connection.")
        self._ended = not message.get("more_body", False)
        piece: bytes = message.get("body", b"")
        self._received_bytes += len(piece)
        if self._received_bytes > self._limits.body_bytes:
            raise BodyTooLarge(f"The body is over the limit of {self._limits.body_bytes} bytes.")
        return piece

    async def _pump(self) -> None:
        try:
            while not self._ended:
                piece = await self._next_piece()
                if piece:
                    self._chunks.append(piece)
                    self._buffered_bytes += len(piece)
                self._changed.set()
                while self._buffered_bytes > _BUFFER_LIMIT_BYTES:
                    self._changed.clear()
                    await self._changed.wait()
            while (await self._receive())["type"] != "http.disconnect":
                pass
            raise ClientGone("The client closed the connection.")
        except (BodyTooLarge, ClientGone) as failure:
            self._failure = failure
            self._ended = True
            self._changed.set()
            if isinstance(failure, ClientGone) and self._owner is not None:
                self._gone = True
                self._owner.cancel()

    async def _stream(self) -> AsyncIterator[bytes]:
        self._start_pump()
        while True:
            while self._chunks:
                chunk = self._chunks.popleft()
                self._buffered_bytes -= len(chunk)
                self._changed.set()
                yield chunk
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(self._limits.body_idle_seconds):
                    await self._changed.wait()
            except TimeoutError as error:
                raise _too_slow(self._limits) from error


def _too_slow(limits: RequestLimits) -> RequestTimeout:
    return RequestTimeout(f"The body did not arrive within {limits.body_idle_seconds:g} seconds.")
