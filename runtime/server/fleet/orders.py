"""What a supervisor tells a host process: its settings, and the names of the calls."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from belem.sdk import Json

__all__ = [
    "ACCEPT",
    "ACTIVE",
    "BEGIN",
    "DRAIN",
    "INVOCATION",
    "KV_DELETE",
    "KV_GET",
    "KV_LIST",
    "KV_PUT",
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

# The other way:
INVOCATION: Final = "invocation"  # one that somebody follows; without an answer
ACTIVE: Final = "active"  # the active version of the process's worker
KV_GET: Final = "kv.get"
KV_PUT: Final = "kv.put"
KV_DELETE: Final = "kv.delete"
KV_LIST: Final = "kv.list"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """What one host process may do, and with what. `process` tells it from the others.

    A process of one tenant has no data directory: its version and its KV are its supervisor's.
    """

    process: str
    port: int
    cache: Path
    data: Path | None
    inference: str
    allow_private_fetch: bool
    access_log: bool
    log_format: Literal["text", "json"]

    def to_wire(self) -> Mapping[str, Json]:
        """Return the settings as JSON."""
        fields = dataclasses.asdict(self)
        for name in _PATHS:
            fields[name] = None if fields[name] is None else str(fields[name])
        return fields

    @staticmethod
    def from_wire(values: Mapping[str, Any]) -> "HostSettings":  # Any: written by `to_wire`
        """Return the settings that a supervisor sent."""
        fields = dict(values)
        for name in _PATHS:
            fields[name] = None if fields[name] is None else Path(fields[name])
        return HostSettings(**fields)


_PATHS: Final = ("data", "cache")
