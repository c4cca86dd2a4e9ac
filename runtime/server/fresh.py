"""`isolation = "request"`: each request has an isolate of its own, which ends with it."""

import asyncio
from collections import deque
from collections.abc import Callable

from belem.isolates import Host, Isolate, IsolateBusy, LogLine
from belem.runtime.server.pool import Pool, PoolBounds, Revision

__all__ = ["FreshPool"]


class FreshPool(Pool):
    """A stock of isolates that no request has seen, filled up between requests."""

    def __init__(
        self,
        host: Host,
        revision: Revision,
        *,
        log: Callable[[LogLine], None],
        bounds: PoolBounds | None = None,
    ) -> None:
        super().__init__(host, revision, log=log, bounds=bounds)
        self._ready: deque[Isolate] = deque()
        self._filling = False

    def _pick(self) -> Isolate:
        if self._serving >= self._bounds.requests:
            self._forget_dead()
            if self._serving >= self._bounds.requests:
                raise self._refusal(self._serving)
        while self._ready:
            isolate = self._ready.pop()  # the one used last: what it needs is in the CPU's caches
            if isolate.dead is None:  # else the host needed the room
                break
        else:
            isolate = self._spawn()
        self._fill_later()
        return isolate

    @property
    def _serving(self) -> int:
        """How many have a request, and those that died and are not forgotten yet."""
        return len(self._isolates) - len(self._ready)

    def _rested(self, isolate: Isolate) -> None:
        if len(self._ready) >= self._bounds.kept:
            self._end(isolate)
        elif self._host.renew(isolate):
            self._ready.append(isolate)
        else:
            self._isolates.pop(isolate, None)

    def _forget_dead(self) -> None:
        super()._forget_dead()
        self._ready = deque(isolate for isolate in self._ready if isolate.dead is None)

    def _fill_later(self) -> None:
        if not self._filling:
            self._filling = True
            asyncio.get_running_loop().call_soon(self._fill)

    def _fill(self) -> None:
        """Start one isolate for the stock; the next one in a turn of its own."""
        self._filling = False
        # The stock is no reason to end other workers' isolates, nor to fail anything.
        full = len(self._ready) >= self._bounds.ready or not self._host.has_room
        if self._closed or full:
            return
        try:
            self._ready.appendleft(self._spawn())
        except IsolateBusy:
            return
        self._fill_later()
