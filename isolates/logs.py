"""What guests print, with a bound on it: a request may fill its share of a log, not the disk."""

from collections.abc import Callable
from typing import Final

from belem.isolates.event import LogLine
from belem.isolates.records import ProtocolBreach, read_object
from belem.isolates.reply import Reply

__all__ = ["Logs"]

_CUT_TEXT: Final = "Log size limit exceeded: more from this request is not recorded."
_LINE_COST_BYTES: Final = 16  # so that empty lines cost something too
_LONGEST_LEVEL: Final = 16


class Logs:
    """The log lines of one isolate on their way to `write`."""

    __slots__ = ("_limit_bytes", "_loose_bytes_left", "_write")

    def __init__(self, write: Callable[[LogLine], None], limit_bytes: int) -> None:
        self._write = write
        self._limit_bytes = limit_bytes
        self._loose_bytes_left = limit_bytes  # for lines of no request, over the isolate's life

    def record(self, id: int, reply: Reply | None, payload: bytes) -> None:
        """Pass on what a LOG record holds; one too large to be worth reading is only noted."""
        left = self._loose_bytes_left if reply is None else reply.log_bytes_left
        if left <= 0:
            return  # before it is parsed: a flood of lines must not hold up the loop
        if len(payload) > 8 * self._limit_bytes:
            self.line(id, reply, "warn", _CUT_TEXT)
            return
        line = read_object(payload, len(payload))
        level, text = line.get("level"), line.get("text")
        if not isinstance(level, str) or not isinstance(text, str):
            raise ProtocolBreach("a log line without level and text")
        self.line(id, reply, level[:_LONGEST_LEVEL], text)

    def line(self, id: int, reply: Reply | None, level: str, text: str) -> None:
        """Pass a line on while its request has room; cut the first that has not, and say so."""
        left = self._loose_bytes_left if reply is None else reply.log_bytes_left
        if left <= 0:
            return
        size = len(text) + _LINE_COST_BYTES
        if size > left:
            text, size = f"{text[: max(0, left - _LINE_COST_BYTES)]}\n{_CUT_TEXT}", left
        if reply is None:
            id, self._loose_bytes_left = 0, left - size
        else:
            reply.log_bytes_left = left - size
        self._write(LogLine(id, level, text, reply))
