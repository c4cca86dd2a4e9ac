"""`isolation = "shared"`: isolates take many requests, as on Workers."""

from belem.isolates import Isolate
from belem.runtime.server.pool import Pool

__all__ = ["SharedPool"]


class SharedPool(Pool):
    """One isolate at first, more when those are busy, new ones for dead ones."""

    def _pick(self) -> Isolate:
        """Return the least busy isolate.

        In one in a long step events would wait for its end, and one that is worn is to rest.
        """
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
            if isolate.in_long_step or isolate.worn:
                load += bounds.requests
            if best is None or load < best_load:
                best, best_load = isolate, load
        if dead:
            self._forget_dead()
        if best is not None and (
            best_load < bounds.busy_at or len(self._isolates) >= bounds.isolates
        ):
            if total >= bounds.requests:
                raise self._refusal(total)
            return best
        return self._spawn()

    def _rested(self, isolate: Isolate) -> None:
        if isolate.worn:
            self._end(isolate)
