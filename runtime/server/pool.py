"""The isolates of one version of a worker: one at first, more when busy, new ones for dead ones."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from belem.isolates import (
    Capability,
    Event,
    Host,
    Image,
    Isolate,
    Limits,
    LogLine,
    Reply,
)
from belem.runtime.server.errors import WorkerUnavailable

__all__ = ["Pool", "PoolBounds", "Revision"]

_DRAIN_POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class PoolBounds:
    """When to start another isolate, and when to stop: each has a heap of its own."""

    busy_at: int = 64  # requests in flight in one isolate
    isolates: int = 8
    requests: int = 4096  # in flight in the whole pool; more are refused at once


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

    async def aclose(self) -> None:
        """Close what came along."""
        for resource in self.resources:
            await resource.aclose()


class Pool:
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
        self._host = host
        self._log = log
        self._bounds = bounds or PoolBounds()
        self._isolates: list[Isolate] = []
        self._closed = False

    @property
    def in_flight(self) -> int:
        """Requests that are not settled: unfinished responses, and waitUntil."""
        return sum(isolate.in_flight for isolate in self._isolates)

    async def dispatch(self, event: Event) -> Reply:
        """Hand the event to an isolate and return when the head of its reply is there."""
        return await self._pick().dispatch(event)

    def acquire(self) -> Isolate | None:
        """Return an isolate that takes an event at once, or None if `dispatch` has to be used."""
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
        isolates, self._isolates = self._isolates, []
        for isolate in isolates:
            await isolate.aclose()
        await self.revision.aclose()

    def _pick(self) -> Isolate:
        """Return the least busy isolate; in one in a long step events would wait for its end."""
        if self._closed:
            raise WorkerUnavailable("This version of the worker has been closed.")
        best: Isolate | None = None
        best_load = total = 0
        bounds = self._bounds
        dead = False
        for isolate in self._isolates:
            if isolate.dead is not None:
                dead = True
                continue
            load = isolate.in_flight
            total += load
            if isolate.in_long_step:
                load += bounds.requests
            if best is None or load < best_load:
                best, best_load = isolate, load
        if dead:
            self._isolates = [isolate for isolate in self._isolates if isolate.dead is None]
        if best is not None and (
            best_load < bounds.busy_at or len(self._isolates) >= bounds.isolates
        ):
            if total >= bounds.requests:
                raise WorkerUnavailable(
                    f"The worker has {total} requests in flight; the limit is {bounds.requests}."
                )
            return best
        return self._spawn()

    def _spawn(self) -> Isolate:
        revision = self.revision
        isolate = self._host.spawn(
            revision.image, revision.capabilities, limits=revision.limits, log=self._log
        )
        self._isolates.append(isolate)
        return isolate
