"""What goes into an isolate, and the lines that come out beside the reply."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from belem.isolates.reply import Reply

__all__ = ["Event", "LogLine"]


class Event(NamedTuple):  # there is one per request, and no dataclass is frozen so cheaply
    """One call of a handler. `head` is text that only the caller and the guest read.

    A body iterator is read as the guest reads, and closed (`aclose`) when the guest stops or the
    request is over. `on_sent` is told the reply that will come, as soon as an isolate has taken the
    event: again, if it goes to another isolate after all.
    """

    name: str
    head: str = ""
    body: bytes | AsyncIterator[bytes] | None = None
    on_sent: Callable[[Reply], None] | None = None


@dataclass(frozen=True, slots=True)
class LogLine:
    """What a guest wrote to its console, and the request in flight that it belongs to, if any."""

    request: int
    level: str
    text: str
    reply: Reply | None = field(default=None, compare=False, repr=False)
