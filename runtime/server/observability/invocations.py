"""The one place that every invocation passes when it is over.

Counting costs about a microsecond. A record is made, and lines of the console are kept, only for
workers that somebody listens to.
"""

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from belem.isolates import KeptLine, LogLine, Reply
from belem.runtime.server.dispatch import RequestEvent
from belem.runtime.server.observability.counters import Counters
from belem.runtime.server.observability.invocation import (
    CUT_LINE,
    Invocation,
    invocation_of,
    kept_line,
)

__all__ = ["Invocations", "Listener"]

Listener = Callable[[Invocation], None]

_log: Final = logging.getLogger("belem.host")

_KEPT_BYTES: Final = 32 << 20  # of console lines, for all invocations that are not over
_LINE_COST_BYTES: Final = 100


class Invocations:
    """Count invocations, and tell listeners. Belongs to one event loop.

    `on_change` hears which workers are listened to whenever that changes: in another process, the
    same ones have to be listened to.
    """

    def __init__(
        self,
        *,
        on_change: Callable[[frozenset[str]], None] | None = None,
        kept_bytes: int = _KEPT_BYTES,
    ) -> None:
        self._counters = Counters()
        self._listeners: dict[str, list[Listener]] = {}
        self._all: list[Listener] = []
        self._on_change = on_change
        self._kept_bytes_left = kept_bytes

    @property
    def listened(self) -> frozenset[str]:
        """The workers that somebody listens to by name."""
        return frozenset(self._listeners)

    # From the data plane

    def responded(self, event: RequestEvent) -> None:
        """Take a response that is over; its invocation may go on."""
        reply = event.reply
        if reply is None or reply.is_settled:
            self._over(event, event.duration_ms)
        else:
            reply.on_settled = partial(self._settled, event, time.perf_counter())

    def logged(self, worker: str, line: LogLine) -> None:
        """Take a line of a worker's console; keep it if somebody waits for its invocation."""
        reply = line.reply
        if reply is None or worker not in self._listeners:
            return
        lines = reply.kept_lines
        if lines is None:
            lines = reply.kept_lines = []
        cost = len(line.text) + _LINE_COST_BYTES
        if cost <= self._kept_bytes_left:
            self._kept_bytes_left -= cost
            lines.append(kept_line(line))
        elif not lines or lines[-1].text != CUT_LINE:
            self._kept_bytes_left -= len(CUT_LINE) + _LINE_COST_BYTES
            lines.append(KeptLine(time.time_ns() // 1_000_000, "warn", CUT_LINE))

    # To those who watch

    def listen(self, worker: str, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every invocation of the worker from now on; return how to stop."""
        listeners = self._listeners.get(worker)
        if listeners is None:
            listeners = self._listeners[worker] = []
            self._changed()
        listeners.append(listener)
        return partial(self._leave, worker, listener)

    def listen_to_all(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every invocation; its console lines are kept for others only."""
        self._all.append(listener)
        return partial(self._all.remove, listener)

    def publish(self, invocation: Invocation) -> None:
        """Tell the listeners of an invocation, which may have been in another process."""
        for listener in (*self._all, *self._listeners.get(invocation.worker, ())):
            listener(invocation)

    def snapshot(self) -> Mapping[str, Any]:
        """Return the counts by worker; `merge` adds those of several processes."""
        return self._counters.snapshot()

    def _settled(self, event: RequestEvent, responded_s: float, _: Reply) -> None:
        waited_ms = (time.perf_counter() - responded_s) * 1000
        self._over(event, event.duration_ms + waited_ms)

    def _over(self, event: RequestEvent, wall_ms: float) -> None:
        self._counters.add(event)
        if self._all or self._listeners:
            try:
                self._tell(event, wall_ms)
            except Exception:  # the boundary to those who watch: requests go on without them
                _log.exception("invocation_listener_failed", extra={"worker": event.worker})
        reply = event.reply
        if reply is not None and reply.kept_lines is not None:
            lines, reply.kept_lines = reply.kept_lines, None
            self._kept_bytes_left += sum(len(line.text) + _LINE_COST_BYTES for line in lines)

    def _tell(self, event: RequestEvent, wall_ms: float) -> None:
        if event.worker is not None and (self._all or event.worker in self._listeners):
            self.publish(invocation_of(event, wall_ms))

    def _leave(self, worker: str, listener: Listener) -> None:
        listeners = self._listeners.get(worker, [])
        if listener in listeners:
            listeners.remove(listener)
            if not listeners:
                del self._listeners[worker]
                self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self.listened)
