"""One client's side of an exchange: what it sends, what it gets, and the news that it went away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from types import TracebackType
from typing import Any, Final

from belem.runtime.server.body import BodyBuffer, body_too_slow
from belem.runtime.server.errors import BodyTooLarge, ClientGone
from belem.runtime.server.requests import BodyPlan, RequestLimits

__all__ = ["ABORT", "Client", "Message", "Receive", "Send", "abort"]

# An ASGI extension of ours: drops the connection, and whatever waits in it for the client.
ABORT: Final = "belem.abort"

# ASGI messages are untyped dictionaries; `Client` is the one place that reads and writes them.
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# A task that waits for the client to go away costs as much as a short request, so it is started
# only for requests that are still running after this long.
_WATCH_AFTER_SECONDS: Final = 0.02


class Client:
    """Read the request, send the response, and cancel the block when the client leaves.

    Nobody but `_pump` calls `receive` once it runs: it fills the body's buffer and, behind the last
    chunk, learns of the disconnect. A client whose body is not being read by the guest is noticed
    only when the buffer empties, as with any server that applies backpressure.
    """

    __slots__ = (
        "_buffer", "_gone", "_limits", "_owner", "_owner_cancels", "_paced", "_pumping", "_receive",
        "_received_bytes", "_send", "_timer", "response_started",
    )  # fmt: skip

    def __init__(self, receive: Receive, send: Send, limits: RequestLimits) -> None:
        self._receive = receive
        self._send = send
        self._limits = limits
        self._received_bytes = 0
        self._buffer: BodyBuffer | None = None
        self._pumping: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._owner: asyncio.Task[Any] | None = None  # Any: the request task's result is not used
        self._owner_cancels = 0
        self._gone = False
        self._paced = False  # a body in pieces: any of them may have to wait for the client
        self.response_started = False

    @property
    def body_error(self) -> BodyTooLarge | None:
        """The limit that the streamed body broke, if it did."""
        failure = self._buffer.failure if self._buffer is not None else None
        return failure if isinstance(failure, BodyTooLarge) else None

    async def body(self, plan: BodyPlan) -> bytes | AsyncIterator[bytes] | None:
        """Return the body as the plan says: nothing, all of it, or an iterator over it."""
        if plan.kind == "none":
            return None
        if plan.kind == "whole":
            return await self._whole()
        self._buffer = BodyBuffer(self._limits, self._start_pump)
        return self._buffer.read()

    async def start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Send the status line and the headers."""
        self.response_started = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, chunk: bytes) -> None:
        """Send a piece of the body; returns when there is room for the next one."""
        self._paced = True
        await self._send_in_time(chunk, more=True)

    async def finish(self, chunk: bytes = b"") -> None:
        """Send the last piece of the body."""
        if self._paced:
            await self._send_in_time(chunk, more=False)
        else:
            await self._send({"type": "http.response.body", "body": chunk, "more_body": False})

    async def _send_in_time(self, chunk: bytes, *, more: bool) -> None:
        try:
            async with asyncio.timeout(self._limits.write_idle_seconds):
                await self._send({"type": "http.response.body", "body": chunk, "more_body": more})
        except TimeoutError as error:
            raise ClientGone("The client stopped reading the response.") from error

    async def __aenter__(self) -> None:
        self._owner = asyncio.current_task()
        assert self._owner is not None
        self._owner_cancels = self._owner.cancelling()
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
        if self._buffer is not None:
            # The guest may go on reading (waitUntil), but nobody fills the buffer any more.
            self._buffer.fail(ClientGone("The response ended before the body was read."))
        # As in asyncio.timeout: swallow the cancellation only if it is ours.
        ours = self._gone and owner is not None and owner.uncancel() <= self._owner_cancels
        if ours and kind is asyncio.CancelledError:
            raise ClientGone("The client closed the connection.") from error

    async def _whole(self) -> bytes:
        pieces: list[bytes] = []
        more = True
        try:
            async with asyncio.timeout(self._limits.body_idle_seconds):
                while more:
                    piece, more = await self._next_piece()
                    pieces.append(piece)
        except TimeoutError as error:
            raise body_too_slow(self._limits) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _next_piece(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone("The client closed the connection.")
        piece: bytes = message.get("body", b"")
        self._received_bytes += len(piece)
        if self._received_bytes > self._limits.body_bytes:
            raise BodyTooLarge(f"The body is over the limit of {self._limits.body_bytes} bytes.")
        return piece, bool(message.get("more_body", False))

    def _start_pump(self) -> None:
        if self._pumping is None:
            self._pumping = asyncio.create_task(self._pump())

    async def _pump(self) -> None:
        try:
            if self._buffer is not None:
                more = True
                while more:
                    piece, more = await self._next_piece()
                    await self._buffer.put(piece)
                self._buffer.end()
            while (await self._receive())["type"] != "http.disconnect":
                pass
            raise ClientGone("The client closed the connection.")
        except (BodyTooLarge, ClientGone) as failure:
            if self._buffer is not None:
                self._buffer.fail(failure)
            if isinstance(failure, ClientGone) and self._owner is not None:
                self._gone = True
                self._owner.cancel()


def abort(scope: Mapping[str, Any]) -> Callable[[], None]:
    """Return what drops a scope's connection; nothing, on a server that cannot."""
    extensions: Mapping[str, Mapping[str, Any]] = scope.get("extensions") or {}
    call: Callable[[], None] = extensions.get(ABORT, {}).get("call", _nothing)
    return call


def _nothing() -> None:
    return None
