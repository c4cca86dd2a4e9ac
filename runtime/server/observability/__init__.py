"""What a host tells of itself: counts, tails and traces of every invocation."""

from belem.runtime.server.observability.counters import merge
from belem.runtime.server.observability.invocation import Invocation, Thrown
from belem.runtime.server.observability.invocations import Invocations, Listener
from belem.runtime.server.observability.metrics import (
    IsolateCounts,
    Metrics,
    Snapshot,
    process_snapshot,
)
from belem.runtime.server.observability.tails import LiveTails
from belem.runtime.server.observability.traces import open_traces

__all__ = [
    "Invocation",
    "Invocations",
    "IsolateCounts",
    "Listener",
    "LiveTails",
    "Metrics",
    "Snapshot",
    "Thrown",
    "merge",
    "open_traces",
    "process_snapshot",
]
