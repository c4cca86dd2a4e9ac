"""What clients who do not read their replies may hold of this process's memory.

A reply is held until its client has taken it. Each is bounded, and a stalled one has its time, but
sixty clients that ask for eight megabytes each and stop reading would hold half a gigabyte for
minutes. So there is a budget for each worker and one for the host. Over it, the reply that has
stalled the longest is cut, and not the next one refused: who reads is served.

One that has moved in the last moment is not called stalled, or a few fast downloads of large files
would cut each other off; a check is made again a moment later. Past twice the budget even those
are cut, the least recent first. A reply is never cut for its own sake, so the largest there may be
still fits when nothing else is held.
"""

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

__all__ = ["Budget", "BudgetLimits", "Lease"]

_HARD_FACTOR: Final = 2


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """Bytes of replies held for clients."""

    worker_bytes: int = 64 << 20
    host_bytes: int = 256 << 20
    stalled_seconds: float = 1.0  # without the client taking anything


class Lease:
    """The bytes that one reply holds. States, forward only: held, then released or cut.

    `cut` is called at most once and never from within a call of the lease's own; it is to close the
    client's connection. The lease is released by then.
    """

    __slots__ = ("_budget", "_cut", "bytes", "is_over", "moved_at", "worker")

    def __init__(
        self, budget: "Budget", worker: Hashable, cut: Callable[[], None], now: float
    ) -> None:
        self.worker = worker
        self.bytes = 0
        self.moved_at = now
        self.is_over = False
        self._budget = budget
        self._cut = cut

    def resize(self, held_bytes: int) -> None:
        """Hold so many bytes now."""
        if not self.is_over:
            self._budget.resize(self, held_bytes)

    def moved(self) -> None:
        """Say that the client has taken something."""
        if not self.is_over:
            self._budget.moved(self)

    def release(self) -> None:
        """Hold nothing any more. Safe to call twice."""
        if not self.is_over:
            self._budget.resize(self, 0)
            self.end()

    def end(self) -> None:
        """For the budget only."""
        self.is_over = True
        self._budget.forget(self)

    def cut(self) -> None:
        """For the budget only."""
        self._cut()


class _Shelf:
    """The leases of one worker, those first that have not moved for the longest."""

    __slots__ = ("bytes", "leases")

    def __init__(self) -> None:
        self.bytes = 0
        self.leases: dict[Lease, None] = {}


class Budget:
    """What is held, by worker. For one event loop."""

    __slots__ = ("_all", "_by_worker", "_checking", "_cuts", "_limits", "_loop_given")

    def __init__(
        self,
        limits: BudgetLimits | None = None,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._limits = limits or BudgetLimits()
        self._loop_given = loop
        self._all = _Shelf()
        self._by_worker: dict[Hashable, _Shelf] = {}
        self._checking: asyncio.TimerHandle | None = None
        self._cuts = 0

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = self._loop_given
        if loop is None:  # made outside of one, used inside
            loop = self._loop_given = asyncio.get_running_loop()
        return loop

    @property
    def held_bytes(self) -> int:
        """Return what is held for all clients together."""
        return self._all.bytes

    @property
    def cuts(self) -> int:
        """Return how many replies were cut so far."""
        return self._cuts

    def take(self, worker: Hashable, held_bytes: int, cut: Callable[[], None]) -> Lease:
        """Begin to hold a reply of a worker. `cut` closes the client's connection."""
        lease = Lease(self, worker, cut, self._loop.time())
        shelf = self._by_worker.get(worker)
        if shelf is None:
            shelf = self._by_worker[worker] = _Shelf()
        shelf.leases[lease] = self._all.leases[lease] = None
        self.resize(lease, held_bytes)
        return lease

    def close(self) -> None:
        """Stop looking. Safe to call twice."""
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None

    # For leases only.

    def resize(self, lease: Lease, held_bytes: int) -> None:
        more = held_bytes - lease.bytes
        lease.bytes = held_bytes
        shelf = self._by_worker[lease.worker]
        shelf.bytes += more
        self._all.bytes += more
        if more > 0:
            self._make_room(shelf, self._limits.worker_bytes, lease)
            self._make_room(self._all, self._limits.host_bytes, lease)

    def moved(self, lease: Lease) -> None:
        lease.moved_at = self._loop.time()
        for leases in (self._by_worker[lease.worker].leases, self._all.leases):
            del leases[lease]
            leases[lease] = None

    def forget(self, lease: Lease) -> None:
        shelf = self._by_worker[lease.worker]
        del shelf.leases[lease], self._all.leases[lease]
        if not shelf.leases:
            del self._by_worker[lease.worker]

    def _make_room(self, shelf: _Shelf, limit_bytes: int, spared: Lease | None) -> None:
        """Cut what has stalled the longest until the shelf is within its limit."""
        if shelf.bytes <= limit_bytes:
            return
        stalled_since = self._loop.time() - self._limits.stalled_seconds
        for lease in list(shelf.leases):
            if shelf.bytes <= limit_bytes:
                return
            is_stalled = lease.moved_at <= stalled_since
            if not is_stalled and shelf.bytes <= limit_bytes * _HARD_FACTOR:
                break  # those behind it have moved since
            if lease is not spared and lease.bytes:
                self._cut(lease)
        if shelf.bytes > limit_bytes and len(shelf.leases) > 1:
            self._look_again()

    def _cut(self, lease: Lease) -> None:
        self._cuts += 1
        lease.release()
        self._loop.call_soon(lease.cut)

    def _look_again(self) -> None:
        if self._checking is None:
            seconds = self._limits.stalled_seconds
            self._checking = self._loop.call_later(seconds, self._check)

    def _check(self) -> None:
        self._checking = None
        for shelf in list(self._by_worker.values()):
            self._make_room(shelf, self._limits.worker_bytes, _last(shelf))
        self._make_room(self._all, self._limits.host_bytes, _last(self._all))


def _last(shelf: _Shelf) -> Lease | None:
    """Return the lease that moved or came last: it alone may be over the limit."""
    return next(reversed(shelf.leases), None)
