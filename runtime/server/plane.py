"""A data plane as the control plane sees it: somewhere to deploy to, running already."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from belem.runtime.control import Stage

__all__ = ["DRAIN_SECONDS", "WAIT_UNTIL_GRACE_SECONDS", "Plane"]

DRAIN_SECONDS: Final = 10.0
WAIT_UNTIL_GRACE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Plane:
    """A running data plane. `workers` are those it started with, and whether each one runs."""

    stage: Stage
    workers: Mapping[str, bool]
