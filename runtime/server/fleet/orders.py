"""What a supervisor tells a host process: its settings, and the names of the calls."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from belem.sdk import Json

__all__ = [
    "ACCEPT",
    "BEGIN",
    "DRAIN",
    "INVOCATION",
    "LISTEN",
    "PREPARE",
    "REFRESH",
    "SNAPSHOT",
    "HostSettings",
]

BEGIN: Final = "begin"  # take the settings and bring back what was live; answers what runs
ACCEPT: Final = "accept"  # begin to take requests
PREPARE: Final = "prepare"  # build and check an upload; changes nothing that is live
REFRESH: Final = "refresh"  # make of a worker what the version store says
SNAPSHOT: Final = "snapshot"  # answers with the counts; who does not answer has hung
LISTEN: Final = "listen"  # the workers whose invocations somebody follows
DRAIN: Final = "drain"  # finish what is in flight, and end; answered at once

INVOCATION: Final = "invocation"  # the other way, without an answer: one that somebody follows


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What one host process may do, and with what. `process` tells it from the others."""

    process: str
    port: int
    data: Path
    cache: Path
    kv_file: Path
    inference: str
    allow_private_fetch: bool
    access_log: bool
    log_format: Literal["text", "json"]

    def to_wire(self) -> Mapping[str, Json]:
        """Return the settings as JSON."""
        fields = dataclasses.asdict(self)
        return fields | {name: str(fields[name]) for name in _PATHS}

    @staticmethod
    def from_wire(values: Mapping[str, Any]) -> "HostSettings":  # Any: written by `to_wire`
        """Return the settings that a supervisor sent."""
        fields = dict(values)
        for name in _PATHS:
            fields[name] = Path(fields[name])
        return HostSettings(**fields)


_PATHS: Final = ("data", "cache", "kv_file")
