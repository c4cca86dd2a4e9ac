"""A request's body between the socket and the guest: a bounded buffer, filled and read once."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from belem.runtime.server.errors import BodyTooLarge, ClientGone, RequestTimeout
from belem.runtime.server.requests import RequestLimits

__all__ = ["BodyBuffer", "body_too_slow"]

_BUFFER_LIMIT_BYTES: Final = 256 * 1024


class BodyBuffer:
    """Chunks that came and were not read yet. States, forward only: open, then ended or failed.

    One side puts and one side reads, and they never wait both: a writer waits for a full buffer to
    be read, a reader for an empty one to be filled.
    """

    def __init__(self, limits: RequestLimits, start: Callable[[], None]) -> None:
        self._limits = limits
        self._start = start  # begins to fill the buffer; nothing is read before the guest reads
        self._chunks: deque[bytes] = deque()
        self._buffered_bytes = 0
        self._changed = asyncio.Event()
        self._ended = False
        self.failure: BodyTooLarge | ClientGone | None = None

    async def put(self, chunk: bytes) -> None:
        """Add a chunk; returns when there is room for the next one."""
        if chunk:
            self._chunks.append(chunk)
            self._buffered_bytes += len(chunk)
            self._changed.set()
        while self._buffered_bytes > _BUFFER_LIMIT_BYTES:
            self._changed.clear()
            await self._changed.wait()

    def end(self) -> None:
        """Say that the body is whole."""
        self._ended = True
        self._changed.set()

    def fail(self, failure: BodyTooLarge | ClientGone) -> None:
        """Say that no more will come; nothing, if the body was whole."""
        if not self._ended:
            self._ended = True
            self.failure = failure
            self._changed.set()

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the chunks as they come, and raise what kept the body from being whole."""
        self._start()
        while True:
            while self._chunks:
                chunk = self._chunks.popleft()
                self._buffered_bytes -= len(chunk)
                self._changed.set()
                yield chunk
            if self.failure is not None:
                raise self.failure
            if self._ended:
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(self._limits.body_idle_seconds):
                    await self._changed.wait()
            except TimeoutError as error:
                raise body_too_slow(self._limits) from error


def body_too_slow(limits: RequestLimits) -> RequestTimeout:
    """Return the error of a client that stopped sending."""
    return RequestTimeout(f"The body did not arrive within {limits.body_idle_seconds:g} seconds.")
