"""From the counts of a host to what Prometheus reads. Nothing is rendered until somebody asks."""

import asyncio
import os
import resource
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Protocol, cast

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from belem.runtime.server.observability.counters import (
    CPU_BOUNDS_S,
    RESPONSE_BOUNDS_S,
    merge,
)
from belem.runtime.server.observability.invocations import Invocations

__all__ = ["IsolateCounts", "Metrics", "Snapshot", "SnapshotCollector", "process_snapshot"]

Snapshot = Mapping[str, Any]  # Any: JSON of our own making

_STARTED_S: Final = time.time()
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_ISOLATE_GAUGES: Final = {
    "isolates": "Isolates alive.",
    "isolate_memory_bytes": "Memory that the isolates alive have grown to, shared pages included.",
}
_ISOLATE_COUNTERS: Final = {
    "isolates_spawned": "Isolates started.",
    "isolates_ended": "Isolates that are gone, by cause.",
    "images_built": "Workers' images built, and not taken from memory or the cache.",
}
_PROCESS_GAUGES: Final = (
    ("resident_memory_bytes", "Resident memory size in bytes."),
    ("open_fds", "Number of open file descriptors."),
    ("start_time_seconds", "Start time of the process since the epoch in seconds."),
)


class IsolateCounts(Protocol):
    """What a host tells of its isolates."""

    def counts(self) -> Mapping[str, int | Mapping[str, int]]:
        """Return numbers by name; one with parts is an object of numbers by cause."""
        ...


class Metrics:
    """Answer a scrape from the snapshots of every process that runs workers."""

    def __init__(self, snapshots: Callable[[], Awaitable[Iterable[Snapshot]]]) -> None:
        self._snapshots = snapshots

    async def __call__(self, accept: str, /) -> tuple[bytes, str]:
        """Return the metrics in a format that the Accept header asks for, and its type."""
        snapshot = merge(await self._snapshots())
        encode, media_type = choose_encoder(accept)
        # A thousand workers are some ten thousand lines: not on the event loop.
        return await asyncio.to_thread(encode, SnapshotCollector(snapshot)), media_type


def process_snapshot(
    invocations: Invocations, isolates: IsolateCounts | None, *, process: str = "0"
) -> Snapshot:
    """Return everything that this process counts; `process` tells it from others of its host."""
    return {
        "workers": invocations.snapshot(),
        "isolates": isolates.counts() if isolates is not None else {},
        "processes": {process: _process_facts()},
    }


class SnapshotCollector(Collector):
    """One snapshot as metric families."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._workers: Mapping[str, Snapshot] = snapshot.get("workers", {})
        self._isolates: Snapshot = snapshot.get("isolates", {})
        self._processes: Mapping[str, Snapshot] = snapshot.get("processes", {})

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield self._requests()
        yield self._histogram(
            "belem_request_duration_seconds",
            "From the first byte of a request to the last of its response.",
            "response",
            RESPONSE_BOUNDS_S,
        )
        yield self._histogram(
            "belem_cpu_seconds", "CPU time of an invocation in its isolate.", "cpu", CPU_BOUNDS_S
        )
        yield self._subrequests()
        yield self._ops()
        yield from self._isolate_families()
        yield from self._process_families()

    def _requests(self) -> Metric:
        family = CounterMetricFamily(
            "belem_requests", "Invocations that are over.", labels=["worker", "outcome", "status"]
        )
        for worker, counts in self._workers.items():
            for outcome, by_status in counts["requests"].items():
                for status, count in by_status.items():
                    family.add_metric([worker, outcome, status], count)
        return family

    def _histogram(self, name: str, text: str, key: str, bounds: Sequence[float]) -> Metric:
        family = HistogramMetricFamily(name, text, labels=["worker"])
        names = [*map(str, bounds), "+Inf"]
        for worker, counts in self._workers.items():
            cumulative = accumulate(counts[key]["buckets"])
            buckets = list(zip(names, cumulative, strict=True))
            family.add_metric([worker], buckets, counts[key]["sum_s"])
        return family

    def _subrequests(self) -> Metric:
        family = CounterMetricFamily(
            "belem_subrequests", "What invocations fetched or asked bindings.", labels=["worker"]
        )
        for worker, counts in self._workers.items():
            family.add_metric([worker], counts["subrequests"])
        return family

    def _ops(self) -> Metric:
        family = CounterMetricFamily(
            "belem_ops", "Operations of the host, by kind.", labels=["worker", "op"]
        )
        for worker, counts in self._workers.items():
            for op, count in counts["ops"].items():
                family.add_metric([worker, op], count)
        return family

    def _isolate_families(self) -> Iterator[Metric]:
        for name, text in _ISOLATE_GAUGES.items():
            if name in self._isolates:
                yield GaugeMetricFamily(f"belem_{name}", text, value=self._isolates[name])
        for name, text in _ISOLATE_COUNTERS.items():
            value = self._isolates.get(name)
            if isinstance(value, Mapping):
                family = CounterMetricFamily(f"belem_{name}", text, labels=["cause"])
                for cause, count in cast("Mapping[str, int]", value).items():  # numbers, as counted
                    family.add_metric([cause], count)
                yield family
            elif value is not None:
                yield CounterMetricFamily(f"belem_{name}", text, value=value)

    def _process_families(self) -> Iterator[Metric]:
        cpu = CounterMetricFamily(
            "process_cpu_seconds", "User and system CPU time in seconds.", labels=["process"]
        )
        for process, facts in self._processes.items():
            cpu.add_metric([process], facts["cpu_seconds"])
        yield cpu
        for name, text in _PROCESS_GAUGES:
            gauge = GaugeMetricFamily(f"process_{name}", text, labels=["process"])
            for process, facts in self._processes.items():
                gauge.add_metric([process], facts[name])
            yield gauge


def _process_facts() -> Mapping[str, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/statm", "rb") as file:
        resident_pages = int(file.read().split()[1])
    return {
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "resident_memory_bytes": resident_pages * _PAGE_BYTES,
        "open_fds": len(os.listdir("/proc/self/fd")),
        "start_time_seconds": _STARTED_S,
    }
