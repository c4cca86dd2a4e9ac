"""Structured logs on stderr: an event and its fields, as key=value or as JSON.

Log with the standard library: `logger.info("worker_live", extra={"worker": name})`.
"""

import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any, Final, Literal, TextIO

__all__ = ["EventFormatter", "set_up_logging"]

Shape = Literal["text", "json"]

# What every record has; anything else came through `extra`.
_STANDARD: Final = frozenset(
    {*vars(logging.LogRecord("", 0, "", 0, "", None, None)), "message", "asctime", "taskName"}
)
_PLAIN_CHARACTERS: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+%*~,"
)


class EventFormatter(logging.Formatter):
    """Write a record as one line; a value that is not one plain word is quoted as in JSON."""

    def __init__(self, shape: Shape = "text") -> None:
        super().__init__()
        self._shape = shape

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        # Any: `extra` takes every kind of value; each is turned into text here.
        fields: dict[str, Any] = {
            "time": _timestamp(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        for name, value in vars(record).items():
            if name not in _STANDARD:
                fields[name] = value
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            fields["traceback"] = self.formatException(record.exc_info)
        return _as_json(fields) if self._shape == "json" else _as_text(fields)


def set_up_logging(
    shape: Shape = "text", *, level: int = logging.INFO, stream: TextIO | None = None
) -> None:
    """Send every logger's records to `stream` (stderr) in one shape."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(EventFormatter(shape))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _as_json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, default=str)


def _as_text(fields: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_value(value)}" for name, value in fields.items())


def _timestamp(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = str(value)
    # Quoting also keeps a worker's console output from forging fields or lines of its own.
    return text if text and _PLAIN_CHARACTERS.issuperset(text) else json.dumps(text)
