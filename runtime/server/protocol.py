"""uvicorn's HTTP protocol with the bounds that it leaves to a proxy; there may be none."""

import asyncio
from typing import Any, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

__all__ = ["BoundedHttpProtocol"]

# A head may be a little over what dispatch allows, so that dispatch can say 414 or 431 with a page.
_HEAD_LIMIT_BYTES: Final = 192 * 1024
_HEAD_TIMEOUT_SECONDS: Final = 30.0
_PIPELINE_LIMIT: Final = 16

_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 34\r\nconnection: close\r\n\r\nThe request's headers are too big\n"
)
_TOO_SLOW: Final = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 37\r\nconnection: close\r\n\r\nThe request's headers took too long.\n"
)


class BoundedHttpProtocol(HttpToolsProtocol):
    """Bound the head and the pipeline, and tell every open request of a disconnect."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # Any: uvicorn's lifespan state, which is off here
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_bytes = 0
        self._head_open = False
        self._fed_body = False
        self._head_timer: asyncio.TimerHandle | None = None
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Give the first request's head its time."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(_HEAD_TIMEOUT_SECONDS, self._refuse, _TOO_SLOW)

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and refuse a head that is too long or too slow."""
        self._fed_body = False
        super().data_received(data)
        # What is no part of a body counts, also behind one: trailers have no other end.
        self._head_bytes = 0 if self._fed_body else self._head_bytes + len(data)
        if self._head_bytes > _HEAD_LIMIT_BYTES:
            self._refuse(_TOO_LARGE)
        elif self._head_open and self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEAD_TIMEOUT_SECONDS, self._refuse, _TOO_SLOW)

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the running request too: uvicorn marks only the newest of a pipeline."""
        self._stop_head_timer()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start to count a head."""
        self._head_open = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Drop trailers: uvicorn would add them to the headers of the running request."""
        if self._head_open:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Remember that a body came."""
        self._fed_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Count anew: what comes next is another request's."""
        self._fed_body = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        """Start the request, unless too many wait on this connection already."""
        self._head_open = False
        self._stop_head_timer()
        if len(self.pipeline) >= _PIPELINE_LIMIT:
            raise httptools.HttpParserError("Too many pipelined requests.")
        super().on_headers_complete()
        assert self.parser is not None
        if self.parser.should_upgrade():
            # The parser stops at an upgrade that nobody takes up: the connection cannot go on
            # after it.
            self.cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # Any: an ASGI app
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the request is answered as a plain one, as HTTP allows."""

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, response: bytes) -> None:
        self._stop_head_timer()
        if self.transport.is_closing():
            return
        if self._running is None or self._running.response_complete:
            self.transport.write(response)
        self.transport.close()
