"""uvicorn's HTTP protocol with the bounds that it leaves to a proxy; there may be none."""

import asyncio
import urllib.parse
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from belem.isolates import Reply
from belem.runtime.server.client import ABORT, Receive, Send
from belem.runtime.server.direct import Connection, DirectExchange
from belem.runtime.server.requests import Scope

__all__ = ["BoundedHttpProtocol", "DirectApp"]

# A head may be a little over what dispatch allows, so that dispatch can say 414 or 431 with a page.
_HEAD_LIMIT_BYTES: Final = 192 * 1024
_HEAD_TIMEOUT_SECONDS: Final = 30.0
_PIPELINE_LIMIT: Final = 16

_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 34\r\nconnection: close\r\n\r\nThe request's headers are too big\n"
)
_TOO_SLOW: Final = (
    b"HTTP/1.1 408 Request Timeout\r\ncontent-type: text/plain; charset=utf-8\r\n"
    b"content-length: 37\r\nconnection: close\r\n\r\nThe request's headers took too long.\n"
)


class DirectApp(Protocol):
    """An application that knows the direct way (`Dispatch`)."""

    def begin(
        self,
        scope: Scope,
        connection: Connection,
        *,
        keep_alive: bool,
        go_on: Callable[[DirectExchange, Reply], None],
    ) -> DirectExchange | None: ...

    async def finish(
        self, direct: DirectExchange, reply: Reply, receive: Receive, send: Send
    ) -> None: ...


class BoundedHttpProtocol(HttpToolsProtocol):
    """Bound the head and the pipeline, tell every open request of a disconnect, go direct.

    `cycle` is uvicorn's newest request of this connection and `_running` the one being answered;
    either may be a `DirectExchange`.
    """

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
        self._running: RequestResponseCycle | DirectExchange | None = None
        app = config.loaded_app
        self._direct = cast(DirectApp, app) if hasattr(app, "begin") else None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0
        self._extensions: dict[str, dict[object, object]] = {}  # as ASGI types them
        self._leaving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Give the first request's head its time."""
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(_HEAD_TIMEOUT_SECONDS, self._refuse, _TOO_SLOW)
        self._extensions = {ABORT: {"call": transport.abort}}

    def data_received(self, data: bytes) -> None:
        """Feed the parser, and refuse a head that is too long or too slow."""
        self._fed_body = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        except httptools.HttpParserUpgrade:
            pass  # answered as a plain request, as HTTP allows
        # What is no part of a body counts, also behind one: trailers have no other end.
        if self._fed_body:
            self._head_bytes = 0
        else:
            self._head_bytes += len(data)
            if self._head_bytes > _HEAD_LIMIT_BYTES:
                self._refuse(_TOO_LARGE)
                return
        if self._head_open and self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEAD_TIMEOUT_SECONDS, self._refuse, _TOO_SLOW)

    def connection_lost(self, exc: Exception | None) -> None:
        """Mark the running request too: uvicorn marks only the newest of a pipeline."""
        self._stop_head_timer()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        running = self._running
        if running is not None and not running.response_complete:
            if isinstance(running, DirectExchange):
                running.disconnect()
            else:
                running.disconnected = True
                running.message_event.set()
        self.pipeline.clear()
        if isinstance(self.cycle, DirectExchange):
            self.cycle = cast(RequestResponseCycle, None)  # as uvicorn begins
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start to count a head."""
        self._head_open = True
        self._head_bytes = 0
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        # As uvicorn makes it, without the state of a lifespan, which is off.
        self.scope = {  # type: ignore[typeddict-item]  # the rest comes with the head's end
            "type": "http",
            "asgi": _ASGI,
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
        }
        self.scope["extensions"] = self._extensions

    def on_header(self, name: bytes, value: bytes) -> None:
        """Drop trailers: uvicorn would add them to the headers of the running request."""
        if self._head_open:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Remember that a body came."""
        self._fed_body = True
        if not isinstance(self.cycle, DirectExchange):  # else a GET's body, which nobody reads
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Count anew: what comes next is another request's."""
        self._fed_body = True
        if not isinstance(self.cycle, DirectExchange):
            super().on_message_complete()

    def on_headers_complete(self) -> None:
        """Start the request, unless too many wait on this connection already."""
        self._head_open = False
        self._stop_head_timer()
        if len(self.pipeline) >= _PIPELINE_LIMIT:
            raise httptools.HttpParserError("Too many pipelined requests.")
        if self._go_direct():
            return
        super().on_headers_complete()
        assert self.parser is not None
        if self.parser.should_upgrade():
            # The parser stops at an upgrade that nobody takes up: the connection cannot go on
            # after it.
            self.cycle.keep_alive = False
        if self._leaving:
            self.cycle.keep_alive = False

    def leave(self) -> None:
        """End the connection with its next response, which says so; go on waiting until then."""
        self._leaving = True
        if self._running is not None and not self._running.response_complete:
            self.cycle.keep_alive = False

    def on_response_complete(self) -> None:
        """Start the next request, or begin to wait for one.

        The clock of an idle connection is wound once and looked at when it has run down: a timer
        for each request would cost as much as parsing it.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._look_if_idle)

    # The direct way

    def write(self, data: bytes) -> bool:
        """Send a whole response, unless the client has yet to read what came before."""
        if self.flow.write_paused:
            return False
        self.transport.write(data)
        return True

    def date(self) -> bytes:
        """Return uvicorn's date, which it makes once a second."""
        return self.server_state.default_headers[0][1]

    def complete(self, *, keep_alive: bool) -> None:
        """Go on after a direct response."""
        if not keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _go_direct(self) -> bool:
        parser = self.parser
        assert parser is not None
        if (
            self._direct is None
            or self.expect_100_continue
            or (self.cycle is not None and not self.cycle.response_complete)
            or parser.should_upgrade()
        ):
            return False
        version = parser.get_http_version()
        scope = cast(dict[str, Any], self.scope)  # Any: as ASGI's scopes
        scope["http_version"] = version
        scope["method"] = parser.get_method().decode("ascii")
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope["path"] = urllib.parse.unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""
        keep_alive = version != "1.0" and parser.should_keep_alive() and not self._leaving
        direct = self._direct.begin(scope, self, keep_alive=keep_alive, go_on=self._go_on)
        if direct is None:
            return False
        self._running = direct
        self.cycle = cast(RequestResponseCycle, direct)
        return True

    def _go_on(self, direct: DirectExchange, reply: Reply) -> None:
        """Let ASGI serve the rest: the request is read, its response is not begun."""
        app = cast(DirectApp, self._direct)
        cycle = RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=direct.keep_alive,
            on_response=self.on_response_complete,
        )
        cycle.scope = cast(Any, direct.scope)
        cycle.more_body = False
        if self.cycle is cast(object, direct):  # else a pipelined request is the newest by now
            self.cycle = cycle

        async def rest(_: Scope, receive: Receive, send: Send) -> None:
            await app.finish(direct, reply, receive, send)

        self._start_asgi_task(cycle, rest)

    def _look_if_idle(self) -> None:
        self._idle_timer = None
        if self.transport.is_closing() or not self.cycle.response_complete:
            return  # the next response winds the clock again
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0.001:
            self._idle_timer = self.loop.call_later(left, self._look_if_idle)
        else:
            self.transport.close()

    def _unset_keepalive_if_required(self) -> None:
        """There is no such timer: see `on_response_complete`."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # Any: an ASGI app
        self._running = cycle
        super()._start_asgi_task(cycle, app)

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
