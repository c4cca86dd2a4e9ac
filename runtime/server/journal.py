"""What a host writes to its log about requests, console lines and the inference daemon."""

import logging
from collections.abc import Callable
from typing import Final

from belem.isolates import GuestThrew, LogLine
from belem.runtime.server.daemon import DaemonState
from belem.runtime.server.dispatch import RequestEvent
from belem.runtime.server.failures import Outcome
from belem.sdk import BelemError

__all__ = ["console_line", "daemon_line", "daemon_state", "request_journal"]

_requests: Final = logging.getLogger("belem.requests")
_console: Final = logging.getLogger("belem.console")
_host: Final = logging.getLogger("belem.host")

_LEVELS: Final = {"error": logging.ERROR, "warn": logging.WARNING, "debug": logging.DEBUG}


def request_journal(*, access_log: bool) -> Callable[[RequestEvent], None]:
    """Return what writes requests down: all of them, or those that failed."""
    return _log_request if access_log else _log_failure


def console_line(worker: str, line: LogLine) -> None:
    """Write down what a worker logged."""
    level = _LEVELS.get(line.level, logging.INFO)
    _console.log(level, "console", extra={"worker": worker, "text": line.text})


def daemon_line(line: str) -> None:
    """Write down what the inference daemon printed."""
    _host.info("inference_output", extra={"text": line})


def daemon_state(state: DaemonState) -> None:
    """Write down what became of the inference daemon."""
    level = logging.WARNING if state.kind == "ended" else logging.INFO
    _host.log(
        level, f"inference_{state.kind}", extra={"daemon_pid": state.pid, "detail": state.detail}
    )


def _log_request(event: RequestEvent) -> None:
    if event.error is not None or event.outcome not in (Outcome.OK, Outcome.REFUSED):
        _log_failure(event)
        return
    _requests.info("request", extra=_fields(event))


def _log_failure(event: RequestEvent) -> None:
    if event.outcome in (Outcome.OK, Outcome.REFUSED, Outcome.CANCELED, Outcome.NOT_FOUND):
        return
    fields = _fields(event)
    error = event.error
    if isinstance(error, GuestThrew):
        fields["error"] = error.message
        fields["stack"] = error.stack
        _requests.error("request_failed", extra=fields)
    elif isinstance(error, BelemError):
        fields["error"] = error.message
        _requests.error("request_failed", extra=fields)
    else:
        _requests.error("request_failed", extra=fields, exc_info=error)


def _fields(event: RequestEvent) -> dict[str, object]:
    reply = event.reply
    return {
        "worker": event.worker,
        "version": event.version,
        "method": event.method,
        "path": event.path,
        "status": event.status,
        "duration_ms": event.duration_ms,
        "cpu_ms": 0.0 if reply is None else reply.cpu_ms,
        "subrequests": 0 if reply is None else reply.usage.subrequests,
        "outcome": event.outcome.value,
        "ray": event.ray,
    }
