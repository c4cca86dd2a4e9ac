"""The isolates of one version of a worker, and who of them takes the next event."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from belem.isolates import Capability, Event, Host, Image, Isolate, Limits, LogLine, Reply
from belem.runtime.server.errors import WorkerUnavailable

__all__ = ["Pool", "PoolBounds", "Revision"]

_DRAIN_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class PoolBounds:
    """When to start another isolate, and when to stop: each has a heap of its own."""

    busy_at: int = 64  # requests in flight in one isolate
    isolates: int = 8  # that share requests
    requests: int = 4096  # in flight in the whole pool; more are refused at once
    # For a worker that has a fresh isolate for each request: how many are in stock at least, and
    # how many that could be used again are kept.
    ready: int = 4
    kept: int = 64
    idle_seconds: float = 60.0  # until an isolate without requests is ended


class Closable(Protocol):
    """Something that a revision brought along."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a worker, ready to run. `resources` are its alone, and close with it."""

    version: str
    image: Image
    capabilities: Mapping[str, Capability]
    limits: Limits
    resources: Sequence[Closable] = ()
    isolation: Literal["shared", "request"] = "shared"

    async def aclose(self) -> None:
        """Close what came along."""
        for resource in self.resources:
            await resource.aclose()


class Pool(ABC):
    """Hand events to isolates of one revision."""

    def __init__(
        self,
        host: Host,
        revision: Revision,
        *,
        log: Callable[[LogLine], None],
        bounds: PoolBounds | None = None,
    ) -> None:
        self.revision = revision
        self._bounds = bounds or PoolBounds()
        self._host = host
        self._log = log
        self._isolates: dict[Isolate, None] = {}  # in the order in which they started
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def in_flight(self) -> int:
        """Requests that are not settled: unfinished responses, and waitUntil."""
        return sum(isolate.in_flight for isolate in self._isolates)

    @abstractmethod
    def _pick(self) -> Isolate:
        """Return the isolate for an event that is sent to it at once."""

    @abstractmethod
    def _rested(self, isolate: Isolate) -> None:
        """React to an isolate's last request having settled."""

    async def dispatch(self, event: Event) -> Reply:
        """Hand the event to an isolate and return when the head of its reply is there."""
        return await self.acquire().dispatch(event)

    def acquire(self) -> Isolate:
        """Return an isolate for one event, which has to be sent at once.

        Raises `WorkerUnavailable` if the pool is closed or full, `IsolateBusy` if the host is.
        """
        if self._closed:
            raise WorkerUnavailable("This version of the worker has been closed.")
        return self._pick()

    async def drain(self, *, grace_seconds: float) -> None:
        """Wait until nothing is in flight, or until the grace is over, and close."""
        try:
            async with asyncio.timeout(grace_seconds):
                while self.in_flight:  # noqa: ASYNC110  # isolates count, and do not tell
                    await asyncio.sleep(_DRAIN_POLL_SECONDS)
        except TimeoutError:
            pass
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """End every isolate; what is in flight fails."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        isolates, self._isolates = self._isolates, {}
        for isolate in isolates:
            await isolate.aclose()
        await self.revision.aclose()

    def _spawn(self) -> Isolate:
        revision = self.revision
        isolate = self._host.spawn(
            revision.image, revision.capabilities, limits=revision.limits, log=self._log
        )
        isolate.on_idle = self._rested
        self._isolates[isolate] = None
        if self._sweeping is None:
            self._sweep_later()
        return isolate

    def _refusal(self, requests: int) -> WorkerUnavailable:
        return WorkerUnavailable(
            f"The worker has {requests} requests in flight; the limit is {self._bounds.requests}."
        )

    def _end(self, isolate: Isolate) -> None:
        isolate.end()
        self._isolates.pop(isolate, None)

    def _forget_dead(self) -> None:
        self._isolates = {isolate: None for isolate in self._isolates if isolate.dead is None}

    def _sweep_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweeping = loop.call_later(self._bounds.idle_seconds, self._sweep, loop)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the isolates that nobody has needed for a while."""
        self._sweeping = None
        since = loop.time() - self._bounds.idle_seconds
        for isolate in self._isolates:
            if not isolate.in_flight and isolate.idle_since <= since:
                isolate.end()
        self._forget_dead()
        if self._isolates:
            self._sweep_later()
