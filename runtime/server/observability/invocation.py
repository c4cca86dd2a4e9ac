"""One invocation of a worker, once it is over: what those who watch are told."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from belem.isolates import (
    CpuLimitExceeded,
    GuestThrew,
    KeptLine,
    LogLine,
    MemoryLimitExceeded,
    Usage,
)
from belem.runtime.server.dispatch import RequestEvent
from belem.runtime.server.failures import Outcome
from belem.runtime.server.observability.redaction import redact_header, redact_url
from belem.sdk import BelemError, Json

__all__ = ["CUT_LINE", "Invocation", "Thrown", "invocation_of", "kept_line"]

CUT_LINE: Final = "More lines of this invocation are in the host's log only."


class Thrown(NamedTuple):
    """An exception that ended an invocation."""

    at_ms: int
    name: str
    message: str
    stack: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One request to a worker, from its first byte until everything in it had settled.

    `url` and `headers` are redacted. `response_ms` ends with the response, `wall_ms` with the last
    of `waitUntil`.
    """

    worker: str
    version: str
    outcome: Outcome
    ray: str
    began_ms: float
    response_ms: float
    wall_ms: float
    cpu_ms: float
    memory_bytes: int
    subrequests: int
    ops: Mapping[str, int]
    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    status: int | None
    lines: tuple[KeptLine, ...] = ()
    exceptions: tuple[Thrown, ...] = ()
    size: int = field(default=0, compare=False)  # roughly, in memory: what a queue is bounded by

    def to_json(self) -> Mapping[str, Json]:
        """Return it as what JSON can carry to another process; `from_json` reads it."""
        return {
            "worker": self.worker,
            "version": self.version,
            "outcome": self.outcome.value,
            "ray": self.ray,
            "began_ms": self.began_ms,
            "response_ms": self.response_ms,
            "wall_ms": self.wall_ms,
            "cpu_ms": self.cpu_ms,
            "memory_bytes": self.memory_bytes,
            "subrequests": self.subrequests,
            "ops": dict(self.ops),
            "method": self.method,
            "url": self.url,
            "headers": [list(header) for header in self.headers],
            "status": self.status,
            "lines": [list(line) for line in self.lines],
            "exceptions": [list(thrown) for thrown in self.exceptions],
            "size": self.size,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Invocation":
        """Return what `to_json` wrote. The other side is a process of the same host."""
        # Any: fields of many kinds, from a process of ours.
        fields: dict[str, Any] = {
            **data,
            "outcome": Outcome(data["outcome"]),
            "headers": tuple((name, value) for name, value in data["headers"]),
            "lines": tuple(KeptLine(*line) for line in data["lines"]),
            "exceptions": tuple(Thrown(*thrown) for thrown in data["exceptions"]),
        }
        return cls(**fields)


def invocation_of(event: RequestEvent, wall_ms: float) -> Invocation:
    """Make the record of an invocation that is over now."""
    now_ms = time.time() * 1000
    reply = event.reply
    usage = reply.usage if reply is not None else Usage()
    kept = reply.kept_lines if reply is not None else None
    lines = tuple(kept) if kept else ()
    headers = _headers(event)
    exceptions = _exceptions(event.error, round(now_ms))
    url = _url(event)
    texts = [url, *(value for _, value in headers), *(line.text for line in lines)]
    return Invocation(
        worker=event.worker or "",
        version=event.version,
        outcome=event.outcome,
        ray=event.ray,
        began_ms=now_ms - wall_ms,
        response_ms=event.duration_ms,
        wall_ms=wall_ms,
        cpu_ms=usage.cpu_seconds * 1000,
        memory_bytes=reply.memory_bytes if reply is not None else 0,
        subrequests=usage.subrequests,
        ops=usage.ops,
        method=event.method,
        url=url,
        headers=headers,
        status=event.status,
        lines=lines,
        exceptions=exceptions,
        size=1024 + sum(map(len, texts)) + sum(len(thrown.stack) for thrown in exceptions),
    )


def kept_line(line: LogLine) -> KeptLine:
    """Return the line with the time at which the host got it."""
    return KeptLine(time.time_ns() // 1_000_000, line.level, line.text)


def _headers(event: RequestEvent) -> tuple[tuple[str, str], ...]:
    if event.scope is None:
        return ()
    pairs = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in event.scope["headers"]]
    return tuple((name, redact_header(name, value)) for name, value in pairs)


def _url(event: RequestEvent) -> str:
    scope = event.scope
    if scope is None:
        return event.path
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    url = f"{scope['scheme']}://{host.decode('latin-1')}{scope['raw_path'].decode('latin-1')}"
    query = scope["query_string"].decode("latin-1")
    return redact_url(f"{url}?{query}" if query else url)


def _exceptions(error: BaseException | None, now_ms: int) -> tuple[Thrown, ...]:
    if error is None:
        return ()
    if isinstance(error, GuestThrew):
        return (Thrown(now_ms, error.name or "Error", error.text, error.stack),)
    if isinstance(error, CpuLimitExceeded):
        return (Thrown(now_ms, "Error", "Worker exceeded CPU time limit."),)
    if isinstance(error, MemoryLimitExceeded):
        return (Thrown(now_ms, "Error", "Worker exceeded memory limit."),)
    if isinstance(error, BelemError):
        return (Thrown(now_ms, "Error", error.message),)
    # What broke inside the host is for the host's log, and for nobody else.
    return (Thrown(now_ms, "Error", "internal error"),)
