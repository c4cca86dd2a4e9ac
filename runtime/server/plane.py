"""A data plane as the control plane sees it: somewhere to deploy to, running already."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from belem.runtime.control import Stage
from belem.runtime.server.observability import Invocations, Snapshot

__all__ = ["DRAIN_SECONDS", "LAST_CALL_SECONDS", "WAIT_UNTIL_GRACE_SECONDS", "Plane"]

DRAIN_SECONDS: Final = 10.0
WAIT_UNTIL_GRACE_SECONDS: Final = 5.0
LAST_CALL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Plane:
    """A running data plane. `workers` are those it started with, and whether each one runs.

    `invocations` tells of those in every process of it; `snapshots` asks each for its counts.
    """

    stage: Stage
    workers: Mapping[str, bool]
    invocations: Invocations
    snapshots: Callable[[], Awaitable[Iterable[Snapshot]]]
