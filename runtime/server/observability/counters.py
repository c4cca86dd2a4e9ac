"""What is counted of every invocation, in plain Python: this is part of every request's cost.

Nothing here knows Prometheus. A snapshot is JSON, so that it can come from another process, and
snapshots add up.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from belem.runtime.server.dispatch import RequestEvent
from belem.runtime.server.failures import Outcome

__all__ = ["CPU_BOUNDS_S", "NOBODY", "OTHERS", "RESPONSE_BOUNDS_S", "Counters", "merge"]

RESPONSE_BOUNDS_S: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
CPU_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
OTHERS: Final = "(other)"  # the workers beyond those counted by name
NOBODY: Final = "(none)"  # requests that led to no worker
_MAX_WORKERS: Final = 1_000
_MAX_OPS: Final = 64  # a worker's own binding names are among them
_RESPONSE_BOUNDS_MS: Final = tuple(bound * 1000 for bound in RESPONSE_BOUNDS_S)
_OK: Final = Outcome.OK


class _Worker:
    """The counts of one worker."""

    __slots__ = (
        "cpu", "cpu_seconds", "ok", "ops", "others", "response", "response_ms", "subrequests",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ok = [0] * 10  # by the first digit of the status
        self.others: dict[tuple[str, int], int] = {}
        self.response = [0] * (len(RESPONSE_BOUNDS_S) + 1)
        self.response_ms = 0.0
        self.cpu = [0] * (len(CPU_BOUNDS_S) + 1)
        self.cpu_seconds = 0.0
        self.subrequests = 0
        self.ops: dict[str, int] = {}

    def add_ops(self, ops: Mapping[str, int]) -> None:
        counts = self.ops
        for op, count in ops.items():
            name = op if op in counts or len(counts) < _MAX_OPS else OTHERS
            counts[name] = counts.get(name, 0) + count

    def snapshot(self) -> Mapping[str, Any]:
        outcomes: dict[str, dict[str, int]] = {}
        for digit, count in enumerate(self.ok):
            if count:
                outcomes.setdefault(_OK.value, {})[_status_class(digit)] = count
        for (outcome, digit), count in self.others.items():
            outcomes.setdefault(outcome, {})[_status_class(digit)] = count
        return {
            "requests": outcomes,
            "response": {"buckets": list(self.response), "sum_s": self.response_ms / 1000},
            "cpu": {"buckets": list(self.cpu), "sum_s": self.cpu_seconds},
            "subrequests": self.subrequests,
            "ops": dict(self.ops),
        }


class Counters:
    """The counts of all workers; beyond `max_workers` names, those of the rest together."""

    def __init__(self, *, max_workers: int = _MAX_WORKERS) -> None:
        self._workers: dict[str | None, _Worker] = {}
        self._max_workers = max_workers

    def add(self, event: RequestEvent) -> None:
        """Count an invocation that is over."""
        worker = self._workers.get(event.worker)
        if worker is None:
            worker = self._open(event.worker)
        digit = (event.status or 0) // 100
        if event.outcome is _OK and digit < 10:
            worker.ok[digit] += 1
        else:
            key = (event.outcome.value, digit)
            worker.others[key] = worker.others.get(key, 0) + 1
        duration_ms = event.duration_ms
        worker.response[bisect_left(_RESPONSE_BOUNDS_MS, duration_ms)] += 1
        worker.response_ms += duration_ms
        reply = event.reply
        if reply is not None:
            usage = reply.usage
            cpu_seconds = usage.cpu_seconds
            worker.cpu[bisect_left(CPU_BOUNDS_S, cpu_seconds)] += 1
            worker.cpu_seconds += cpu_seconds
            worker.subrequests += usage.subrequests
            if usage.ops:
                worker.add_ops(usage.ops)

    def snapshot(self) -> Mapping[str, Any]:
        """Return all counts by worker, as JSON."""
        return {NOBODY if n is None else n: w.snapshot() for n, w in self._workers.items()}

    def _open(self, name: str | None) -> _Worker:
        if name is not None and len(self._workers) >= self._max_workers:
            name = OTHERS
        worker = self._workers.get(name)
        if worker is None:
            worker = self._workers[name] = _Worker()
        return worker


def merge(snapshots: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add snapshots of one shape: numbers are summed, lists by position, objects by key."""
    merged: dict[str, Any] = {}
    for snapshot in snapshots:
        _add(merged, snapshot)
    return merged


def _add(into: dict[str, Any], snapshot: Mapping[str, Any]) -> None:
    for key, value in snapshot.items():
        if isinstance(value, Mapping):
            # Any: JSON, whose shape the keys decide.
            _add(into.setdefault(key, {}), cast("Mapping[str, Any]", value))
        elif isinstance(value, list):
            numbers = cast("list[float]", value)  # there are no other lists
            earlier: list[float] = into.get(key, [0] * len(numbers))
            into[key] = [a + b for a, b in zip(earlier, numbers, strict=True)]
        else:
            into[key] = into.get(key, 0) + value


def _status_class(digit: int) -> str:
    return f"{digit}xx" if digit else "none"
