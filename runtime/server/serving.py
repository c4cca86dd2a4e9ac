"""Run ASGI applications on sockets: bind, serve, drain. Signals belong to the caller."""

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, Final, cast

import uvicorn
from uvicorn.server import ServerState

from belem.runtime.server.accepting import Acceptor, Share
from belem.runtime.server.errors import PortInUse, ResponseBroken
from belem.runtime.server.protocol import BoundedHttpProtocol

__all__ = ["Listener", "bind", "serving"]

# Any: ASGI's scope and messages are untyped dictionaries.
AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]

_BACKLOG: Final = 2048
_KEEP_ALIVE_SECONDS: Final = 75
_LAST_CALL_POLL_SECONDS: Final = 0.02


class Listener:
    """A bound socket and its address; it listens once it is served."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        name = sock.getsockname()
        # A Unix socket has a path and no port; only the processes of a host use one.
        self.host: str = name[0] if isinstance(name, tuple) else "localhost"
        self.port: int = name[1] if isinstance(name, tuple) else 0

    @property
    def url(self) -> str:
        """The address as a URL that works from this machine."""
        host = {"0.0.0.0": "localhost", "::": "localhost", "127.0.0.1": "localhost"}.get(self.host)
        if host is None:
            host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def bind(host: str, port: int, *, flag: str = "--port") -> Listener:
    """Bind a TCP socket; port 0 is any. `flag` names the option in the error."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Restarting must not wait for old connections' TIME_WAIT.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        # Listen at once: on Linux a second process could bind too, and fail only later.
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"Port {port} on {host} is in use. Stop the program that has it, or choose "
                "another: "
                f"{flag} {port + 1 if port < 65535 else port - 1} ({flag} 0 takes any free one)."
            ) from error
        raise PortInUse(f"Cannot listen on {host}:{port}: {error.strerror}.") from error
    sock.setblocking(False)
    return Listener(sock)


@contextlib.asynccontextmanager
async def serving(
    app: AsgiApp,
    listener: Listener,
    *,
    drain_seconds: float = 10.0,
    share: Share | None = None,
    protocol: type[BoundedHttpProtocol] = BoundedHttpProtocol,
    last_call_seconds: float = 0.0,
) -> AsyncGenerator[None, None]:
    """Serve `app` on `listener` for the length of the block.

    On exit the socket stops to accept, idle connections close, and requests in flight have
    `drain_seconds` before they are cancelled. The block starts when connections are accepted.
    `share` is for a socket that other processes accept on too. A connection that is closed while it
    is idle can cross a request, whose client then cannot know whether it was seen: so for
    `last_call_seconds` whoever asks is still answered, and told that the connection ends.
    """
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(drain_seconds)),
    )
    server = _Server(config, share, last_call_seconds)
    _quiet_uvicorn()
    task = asyncio.create_task(server.serve(sockets=[listener.sock]))
    try:
        started = asyncio.create_task(server.ready.wait())
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if task.done():
            await task
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, and with an event for "accepting"."""

    def __init__(
        self, config: uvicorn.Config, share: Share | None, last_call_seconds: float
    ) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._share = share
        self._last_call_seconds = last_call_seconds
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        share = self._share
        await super().startup(sockets=sockets if share is None else [])
        if share is not None:
            # As uvicorn makes it for a server of the event loop.
            def protocol() -> asyncio.Protocol:
                state = self.lifespan.state
                return _CountedProtocol(self.config, self.server_state, state, share)

            self._acceptors = [Acceptor(sock, protocol, share) for sock in sockets or []]
            for acceptor in self._acceptors:
                acceptor.start()
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for acceptor in self._acceptors:
            await acceptor.aclose()
        if self._last_call_seconds:
            await self._last_call()
        await super().shutdown(sockets=sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def _last_call(self) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            cast(BoundedHttpProtocol, connection).leave()  # as the config says
        end_s = time.monotonic() + self._last_call_seconds
        while self.server_state.connections and time.monotonic() < end_s:  # noqa: ASYNC110  # as uvicorn
            await asyncio.sleep(_LAST_CALL_POLL_SECONDS)


class _CountedProtocol(BoundedHttpProtocol):
    """A connection that was counted when it was accepted."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # Any: uvicorn's lifespan state, which is off here
        share: Share,
    ) -> None:
        super().__init__(config, server_state, app_state)
        self._share = share

    def connection_lost(self, exc: Exception | None) -> None:
        self._share.add(-1)
        super().connection_lost(exc)


def _quiet_uvicorn() -> None:
    """Keep uvicorn's warnings and errors, but for those that dispatch has reported already."""
    logger = logging.getLogger("uvicorn.error")
    logger.setLevel(logging.WARNING)
    if not any(isinstance(existing, _Reported) for existing in logger.filters):
        logger.addFilter(_Reported())


class _Reported(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, ResponseBroken | asyncio.CancelledError)
