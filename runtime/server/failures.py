"""What a failed request is told: every error that can end one, in one table."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from belem.isolates import (
    CpuLimitExceeded,
    GuestHung,
    GuestThrew,
    IsolateLost,
    MemoryLimitExceeded,
)
from belem.runtime.server.errors import BadReply, NoSuchWorker
from belem.sdk import BelemError

__all__ = ["Failure", "Outcome", "describe"]

HUNG_TEXT: Final = (
    "The Workers runtime canceled this request because it detected that your Worker's code had "
    "hung and "
    "would never generate a response."
)


class Outcome(StrEnum):
    """How a request ended, in Workers' words."""

    OK = "ok"
    EXCEPTION = "exception"
    EXCEEDED_CPU = "exceededCpu"
    EXCEEDED_MEMORY = "exceededMemory"
    CANCELED = "canceled"
    NOT_FOUND = "scriptNotFound"
    STREAM_DISCONNECTED = "responseStreamDisconnected"
    REFUSED = "refused"  # ours: the request never reached a worker
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed request as its client may know it; `explain` adds what the code said."""

    status: int
    outcome: Outcome
    title: str
    happened: str
    advice: str
    error_code: int | None = None  # Workers' number: 1101, 1102


_THREW: Final = Failure(
    500,
    Outcome.EXCEPTION,
    "Worker threw exception",
    "The worker's code failed while it was answering this request.",
    "If this is your worker, its log has the error under this ray id.",
    1101,
)
_PASSED_THROUGH: Final = Failure(
    502,
    Outcome.EXCEPTION,
    "Worker threw exception",
    "The worker's code failed and asked to pass the request through to its origin "
    "(ctx.passThroughOnException), but there is no origin behind a worker here.",
    "If this is your worker, answer from a catch block instead; its log has the error under this "
    "ray id.",
    1101,
)
_HUNG: Final = Failure(
    500,
    Outcome.EXCEPTION,
    "Worker threw exception",
    HUNG_TEXT,
    "If this is your worker, look for a promise that nothing resolves.",
    1101,
)
_CPU: Final = Failure(
    503,
    Outcome.EXCEEDED_CPU,
    "Worker exceeded resource limits",
    "The worker used more CPU time than one request may.",
    "If this is your worker, do less work in a request or raise limits.cpu_ms in its "
    "configuration.",
    1102,
)
_MEMORY: Final = Failure(
    503,
    Outcome.EXCEEDED_MEMORY,
    "Worker exceeded resource limits",
    "The worker used more memory than an isolate may.",
    "If this is your worker, stream large bodies instead of holding them.",
    1102,
)
_LOST: Final = Failure(
    503,
    Outcome.UNKNOWN,
    "Worker is temporarily unavailable",
    "The isolate that was answering this request ended because of another request.",
    "Try again: a new isolate has taken its place.",
    1105,
)
_BAD_REPLY: Final = Failure(
    500,
    Outcome.EXCEPTION,
    "Worker threw exception",
    "The worker answered with a response that HTTP cannot carry.",
    "If this is your worker, its log has the reason under this ray id.",
    1101,
)
_NOTHING_HERE: Final = Failure(
    404,
    Outcome.NOT_FOUND,
    "There is nothing here yet",
    "No worker is deployed at this address.",
    "If you expected one, check its name, or deploy it with: belem deploy PATH",
)
_INTERNAL: Final = Failure(
    500,
    Outcome.UNKNOWN,
    "Internal error",
    "Something in the server failed; the worker's code is not to blame.",
    "Try again. The server's log has the error under this ray id.",
)

# Looked up along the class's bases, so that a new kind of isolate error is at worst a lost isolate.
_TABLE: Final[dict[type[BaseException], Failure]] = {
    GuestThrew: _THREW,
    GuestHung: _HUNG,
    CpuLimitExceeded: _CPU,
    MemoryLimitExceeded: _MEMORY,
    IsolateLost: _LOST,
    BadReply: _BAD_REPLY,
    NoSuchWorker: _NOTHING_HERE,
}

_REFUSALS: Final[dict[int, str]] = {
    400: "Bad request",
    405: "Method not allowed",
    408: "Request timed out",
    413: "Request body is too large",
    414: "URL is too long",
    431: "Request headers are too large",
    503: "Temporarily unavailable",
}


def describe(error: BaseException) -> Failure:
    """Return what the client of a request that ended with `error` is told."""
    if isinstance(error, GuestThrew) and error.pass_through:
        return _PASSED_THROUGH
    for kind in type(error).__mro__:
        if kind in _TABLE:
            return _TABLE[kind]
    if isinstance(error, BelemError) and error.status in _REFUSALS:
        return Failure(
            error.status,
            Outcome.REFUSED,
            _REFUSALS[error.status],
            error.message,
            "Change the request and try again."
            if error.side == "user"
            else "Try again in a moment.",
        )
    return _INTERNAL
