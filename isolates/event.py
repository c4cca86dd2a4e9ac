"""What goes into an isolate, and the lines that come out beside the reply."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

__all__ = ["Event", "LogLine"]


@dataclass(frozen=True, slots=True)
class Event:
    """One call of a handler. `head` is text that only the caller and the guest read.

    A body iterator is read as the guest reads, and closed (`aclose`) when the guest stops or the
    request is over.
    """

    name: str
    head: str = ""
    body: bytes | AsyncIterator[bytes] | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """What a guest wrote to its console. `request` is 0 when it belongs to no request in flight."""

    request: int
    level: str
    text: str
