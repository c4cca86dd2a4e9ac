"""A live worker: the current version takes new requests while earlier ones finish on theirs."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from belem.isolates import Event, Host, Isolate, IsolateLost, LogLine, Reply
from belem.runtime.server.dispatch import Target
from belem.runtime.server.errors import WorkerUnavailable
from belem.runtime.server.fresh import FreshPool
from belem.runtime.server.pool import Pool, PoolBounds, Revision
from belem.runtime.server.shared import SharedPool

__all__ = ["LiveWorker"]

# Longer than waitUntil's 30 seconds after a response, so that only a stuck version is cut off.
_GRACE_SECONDS: Final = 60.0
_ATTEMPTS: Final = 3


class LiveWorker:
    """Serve one worker, and swap its version between two requests.

    `swap` is one assignment on the event loop's thread: a request goes either to the old version
    or to the new one. The old pool closes when its last request is settled, or after a grace time.

    An event that no guest has seen goes to another isolate when the first one turns out dead, so a
    request's runaway loop costs at most the requests that it shared its isolate with. A streamed
    body cannot be read twice: a request that has one is not handed on.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        revision: Revision,
        *,
        log: Callable[[LogLine], None],
        bounds: PoolBounds | None = None,
        grace_seconds: float = _GRACE_SECONDS,
    ) -> None:
        self._name = name
        self._host = host
        self._log = log
        self._bounds = bounds
        self._grace_seconds = grace_seconds
        self._pool = self._open_pool(revision)
        self._retiring: dict[Pool, asyncio.Task[None]] = {}
        self._closed = False
        self.successor: Target | None = None  # takes what still comes after this one went to rest
        self.asked_at = time.monotonic()  # when the last request came

    @property
    def name(self) -> str:
        """The worker's name."""
        return self._name

    @property
    def revision(self) -> Revision:
        """The version that takes new requests."""
        return self._pool.revision

    @property
    def version(self) -> str:
        """The id of the version that takes new requests."""
        return self._pool.revision.version

    @property
    def in_flight(self) -> int:
        """Unsettled requests, on every version."""
        return self._pool.in_flight + sum(pool.in_flight for pool in self._retiring)

    async def dispatch(self, event: Event) -> Reply:
        """Hand the event to an isolate of the current version."""
        if self.successor is not None:  # it was put to rest while the request's body came in
            return await self.successor.dispatch(event)
        self.asked_at = time.monotonic()
        repeatable = event.body is None or isinstance(event.body, bytes)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._pool.dispatch(event)
            except IsolateLost as lost:
                if lost.delivered or not repeatable or attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def acquire(self) -> Isolate | None:
        """Return an isolate for one event, which has to be sent at once."""
        if self.successor is not None:
            return None
        self.asked_at = time.monotonic()
        return self._pool.acquire()

    def swap(self, revision: Revision) -> None:
        """Send new requests to `revision`. Returns at once: it is live when this returns."""
        if self._closed:
            raise WorkerUnavailable(f"The worker {self._name} has been closed.")
        old, self._pool = self._pool, self._open_pool(revision)
        task = asyncio.create_task(old.drain(grace_seconds=self._grace_seconds))
        self._retiring[old] = task
        task.add_done_callback(lambda _: self._retiring.pop(old, None))

    def _open_pool(self, revision: Revision) -> Pool:
        kind = FreshPool if revision.isolation == "request" else SharedPool
        return kind(self._host, revision, log=self._log, bounds=self._bounds)

    async def drain(self, *, grace_seconds: float) -> None:
        """Let every version finish, for at most `grace_seconds`, and close."""
        self._closed = True
        pools = [self._pool, *self._retiring]
        await asyncio.gather(*(pool.drain(grace_seconds=grace_seconds) for pool in pools))
        await self.aclose()

    async def aclose(self) -> None:
        """End every isolate of every version."""
        self._closed = True
        tasks = list(self._retiring.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._pool.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
