"""Tails: the live stream of a worker's invocations, as lines of JSON over HTTP."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, Protocol

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from belem.runtime.control.tail_filter import TailFilter
from belem.sdk import Json

__all__ = ["HEARTBEAT_SECONDS", "Tail", "TailResponse", "Tails"]

# An empty line, now and then: without one, neither side would learn that the other is gone.
HEARTBEAT_SECONDS: Final = 15.0
_STALLED_SECONDS: Final = 60.0


class Tail(Protocol):
    """One client's stream. What the client is too slow for is dropped and counted."""

    async def take(self) -> Sequence[Mapping[str, Json]]:
        """Wait for messages and return them; none at all means that the host is closing."""
        ...

    def close(self) -> None:
        """Stop to listen. Safe to call twice."""
        ...


class Tails(Protocol):
    """Where tails come from."""

    def open(self, worker: str, filter: TailFilter, /) -> Tail:
        """Listen to a worker's invocations; raise `TooManyTails` when there is no room."""
        ...


class TailResponse(StreamingResponse):
    """Stream a tail until its client goes or the host closes; it is closed whatever happens."""

    def __init__(self, tail: Tail, *, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        super().__init__(
            _lines(tail, heartbeat_seconds),
            media_type="application/x-ndjson",
            headers={"cache-control": "no-store"},
        )
        self._tail = tail

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._tail.close()

    async def stream_response(self, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(_STALLED_SECONDS):
                await send(message)

        try:
            await super().stream_response(send_in_time)
        except TimeoutError:
            return  # the client does not read; the server ends the connection


async def _lines(tail: Tail, heartbeat_seconds: float) -> AsyncGenerator[bytes, None]:
    yield b"\n"  # the client learns that it is connected
    while True:
        try:
            async with asyncio.timeout(heartbeat_seconds):
                messages = await tail.take()
        except TimeoutError:
            yield b"\n"
            continue
        if not messages:
            return
        for message in messages:
            # Escaped: no character of a worker's can end a line.
            yield json.dumps(message, separators=(",", ":")).encode() + b"\n"
