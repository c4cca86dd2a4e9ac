"""Tails on the host's side: bounded queues from invocations to those who follow a worker."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from belem.runtime.control.errors import TooManyTails
from belem.runtime.control.tail_filter import TailFilter
from belem.runtime.server.observability.invocation import CUT_LINE, Invocation
from belem.runtime.server.observability.invocations import Invocations
from belem.sdk import Json

__all__ = ["LiveTail", "LiveTails", "tail_message"]

_MAX_TAILS: Final = 32
_MAX_QUEUED: Final = 1_000
_MAX_QUEUED_BYTES: Final = 2 << 20


class LiveTails:
    """The tails of one host. `close` ends them all, and no more can be opened."""

    def __init__(self, invocations: Invocations, *, max_tails: int = _MAX_TAILS) -> None:
        self._invocations = invocations
        self._max_tails = max_tails
        self._tails: set[LiveTail] = set()
        self._closed = False

    def open(self, worker: str, filter: TailFilter, /) -> "LiveTail":
        """Follow a worker."""
        if len(self._tails) >= self._max_tails:
            raise TooManyTails(
                f"{len(self._tails)} tails are open on this host; the limit is {self._max_tails}."
            )
        tail = LiveTail(self._invocations, worker, filter, self._tails.discard)
        self._tails.add(tail)
        if self._closed:
            tail.end()
        return tail

    def close(self) -> None:
        """Let every tail end after what is queued."""
        self._closed = True
        for tail in self._tails:
            tail.end()


class LiveTail:
    """The queue of one client. Forward only: open, ended (the host is closing), closed."""

    def __init__(
        self,
        invocations: Invocations,
        worker: str,
        filter: TailFilter,
        closed: Callable[["LiveTail"], None],
        *,
        max_queued: int = _MAX_QUEUED,
        max_queued_bytes: int = _MAX_QUEUED_BYTES,
    ) -> None:
        self._filter = filter
        self._closed = closed
        self._max_queued = max_queued
        self._max_queued_bytes = max_queued_bytes
        self._queue: deque[Invocation] = deque()
        self._queued_bytes = 0
        self._dropped = 0
        self._ended = False
        self._ready = asyncio.Event()
        self._leave = invocations.listen(worker, self._put)

    async def take(self) -> Sequence[Mapping[str, Json]]:
        """Wait for messages and return them; none at all means that the host is closing."""
        await self._ready.wait()
        if not self._ended:
            self._ready.clear()
        messages = [tail_message(invocation) for invocation in self._queue]
        if self._dropped:
            messages.append({"dropped": self._dropped})
        self._queue.clear()
        self._queued_bytes = self._dropped = 0
        return messages

    def end(self) -> None:
        """Let the client have what is queued, and then nothing more."""
        self._leave()
        self._ended = True
        self._ready.set()

    def close(self) -> None:
        """Stop to listen. Safe to call twice."""
        self.end()
        self._closed(self)

    def _put(self, invocation: Invocation) -> None:
        if not self._filter.accepts(invocation):
            return
        if (
            len(self._queue) >= self._max_queued
            or self._queued_bytes + invocation.size > self._max_queued_bytes
        ):
            self._dropped += 1
        else:
            self._queue.append(invocation)
            self._queued_bytes += invocation.size
        self._ready.set()


def tail_message(invocation: Invocation) -> Mapping[str, Json]:
    """Return the invocation in the shape that Wrangler's tail prints; ours is under "belem"."""
    request: Mapping[str, Json] = {
        "url": invocation.url,
        "method": invocation.method,
        "headers": dict(invocation.headers),
        "cf": {},
    }
    response = None if invocation.status is None else {"status": invocation.status}
    return {
        "outcome": invocation.outcome.value,
        "scriptName": invocation.worker,
        "scriptVersion": {"id": invocation.version},
        "exceptions": [
            {
                "name": thrown.name,
                "message": thrown.message,
                "timestamp": thrown.at_ms,
                "stack": thrown.stack,
            }
            for thrown in invocation.exceptions
        ],
        "logs": [
            {"level": line.level, "message": [line.text], "timestamp": line.at_ms}
            for line in invocation.lines
        ],
        "truncated": any(line.text == CUT_LINE for line in invocation.lines[-1:]),
        "eventTimestamp": round(invocation.began_ms),
        "event": {"request": request, "response": response},
        "cpuTime": round(invocation.cpu_ms, 3),
        "wallTime": round(invocation.wall_ms, 3),
        "belem": {
            "ray": invocation.ray,
            "responseTime": round(invocation.response_ms, 3),
            "memoryBytes": invocation.memory_bytes,
            "subrequests": invocation.subrequests,
            "ops": invocation.ops,
        },
    }
