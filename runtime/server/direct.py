"""The direct way: a request without a body, answered whole, in callbacks alone.

Most requests are of this kind. Between the parser and the isolate they meet no task, no future and
no ASGI message, which together cost more than a short handler. What turns out to be anything else
(an error, a stream, a client that does not read) goes on the long way, `Dispatch` as ASGI.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from belem.isolates import Event, Isolate, Reply
from belem.runtime.server.errors import BadReply
from belem.runtime.server.failures import Outcome
from belem.runtime.server.responses import WireHead, read_wire_head

__all__ = ["Connection", "DirectExchange"]

_WHOLE_BYTES: Final = 256 * 1024


class Connection(Protocol):
    """What an exchange needs of the connection that it is on."""

    def write(self, data: bytes) -> bool:
        """Send bytes, unless those before them still wait: then send nothing and return False."""
        ...

    def date(self) -> bytes:
        """Return the value of the Date header."""
        ...

    def complete(self, *, keep_alive: bool) -> None:
        """Go on to the next request, or end the connection."""
        ...


class DirectExchange:
    """One request on the direct way: first sent, then answered, gone or handed to the long way.

    It stands where uvicorn expects its own cycle, so it has that one's names for its states.
    """

    __slots__ = (
        "_connection", "_on_end", "_on_long_way", "disconnected", "keep_alive", "outcome", "ray",
        "reply", "response_complete", "scope", "started_s", "status", "target", "version",
    )  # fmt: skip

    def __init__(
        self,
        scope: Mapping[str, Any],  # Any: as ASGI's scopes
        connection: Connection,
        target: Any,
        ray: str,
        keep_alive: bool,
        on_end: Callable[["DirectExchange"], None],
        on_long_way: Callable[["DirectExchange", Reply], None],
    ) -> None:
        self.scope = scope
        self.target = target
        self.version: str = target.version
        self.ray = ray
        self.keep_alive = keep_alive
        self.started_s = time.perf_counter()
        self.status: int | None = None
        self.outcome = Outcome.OK
        self.reply: Reply | None = None
        self.response_complete = False
        self.disconnected = False
        self._connection = connection
        self._on_end = on_end
        self._on_long_way = on_long_way

    def send(self, isolate: Isolate, head: str) -> None:
        """Run the worker's handler."""
        self.reply = isolate.send(Event("fetch", head), self._answered)

    def disconnect(self) -> None:
        """The client is gone: the handler is told so."""
        self.disconnected = True
        if self.reply is not None:
            self.reply.close()
        self.outcome = Outcome.CANCELED
        self._on_end(self)

    def _answered(self, reply: Reply) -> None:
        if self.disconnected:
            return
        data = None if reply.error is not None else self._response(reply)
        if data is None or not self._connection.write(data):
            self.status = None
            self._on_long_way(self, reply)
            return
        self.response_complete = True
        self._connection.complete(keep_alive=self.keep_alive)
        self._on_end(self)

    def _response(self, reply: Reply) -> bytes | None:
        """Return the whole response; None for what is not to be sent from here."""
        body = reply.body
        if not isinstance(body, bytes) or not 0 < len(body) <= _WHOLE_BYTES:
            return None
        try:
            head: WireHead = read_wire_head(reply.head)
        except BadReply:
            return None
        if not head.has_body or self.scope["method"] == "HEAD":
            return None
        self.status = head.status
        return b"%sdate: %s\r\n%scontent-length: %d\r\ncf-ray: %s\r\n%s\r\n%s" % (
            head.status_line,
            self._connection.date(),
            head.lines,
            len(body),
            self.ray.encode(),
            b"" if self.keep_alive else b"connection: close\r\n",
            body,
        )
