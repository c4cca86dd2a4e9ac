"""Accept from a socket that several processes accept from, each its share."""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Final, Protocol

__all__ = ["Acceptor", "Share"]

_FULL_WAIT_SECONDS: Final = 0.2
_POLITE_SECONDS: Final = 0.001
_POLITE_TURNS: Final = 3
_IMPATIENT_SECONDS: Final = 1.0

_log: Final = logging.getLogger("belem.host")


class Share(Protocol):
    """What a process knows of its own connections and of the others'."""

    def ahead(self) -> bool:
        """Return whether another process has clearly fewer connections than this one."""
        ...

    def add(self, connections: int) -> None:
        """Count connections that opened, or closed."""
        ...


class Acceptor:
    """Take connections off a listening socket one by one, and leave some to others.

    The event loop's own server takes all that wait at once: of 64 clients that connect together,
    the first of four processes to wake gets 54, for as long as they stay. Here a process that is
    ahead of another waits a few milliseconds for it to wake. If nobody has taken the connection
    then, the others are busy or have hung, and for a while nobody is waited for.
    """

    def __init__(
        self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol], share: Share
    ) -> None:
        self._sock = sock
        self._protocol = protocol
        self._share = share
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._polite_turns = _POLITE_TURNS
        self._impatient_until_s = 0.0

    def start(self) -> None:
        """Begin to accept."""
        self._timer = None
        self._loop.add_reader(self._sock.fileno(), self._accept)

    async def aclose(self) -> None:
        """Stop to accept, and close this process's hold on the socket.

        What was accepted is a connection of the server when this returns.
        """
        if self._timer is not None:
            self._timer.cancel()
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _accept(self) -> None:
        if self._leaves_it():
            return
        try:
            connection, _ = self._sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another process was faster, or the client is gone
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                raise
            _log.error("accept_failed", extra={"error": str(error)})
            self._pause(_FULL_WAIT_SECONDS)
            return
        connection.setblocking(False)
        self._share.add(1)  # the protocol takes it back in `connection_lost`
        task: asyncio.Task[object] = self._loop.create_task(
            self._loop.connect_accepted_socket(self._protocol, connection)
        )
        self._opening.add(task)
        task.add_done_callback(self._opened)

    def _leaves_it(self) -> bool:
        now_s = self._loop.time()
        if now_s < self._impatient_until_s or not self._share.ahead():
            self._polite_turns = _POLITE_TURNS
            return False
        if self._polite_turns == 0:
            self._impatient_until_s = now_s + _IMPATIENT_SECONDS
            self._polite_turns = _POLITE_TURNS
            return False
        self._polite_turns -= 1
        self._pause(_POLITE_SECONDS)
        return True

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._timer = self._loop.call_later(seconds, self.start)

    def _opened(self, task: asyncio.Task[object]) -> None:
        self._opening.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._share.add(-1)
            _log.warning("connection_failed", extra={"error": str(error)})
