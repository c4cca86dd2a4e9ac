"""A request and its reply: one object, because there is one per request."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

from belem.isolates.usage import Usage
from belem.sdk.errors import BelemError

__all__ = ["KeptLine", "Reply"]

_log: Final = logging.getLogger("belem.isolates")


class KeptLine(NamedTuple):
    """A line of the console that is to be read together with its request."""

    at_ms: int
    level: str
    text: str


class Reply:
    """What a handler answered. Made by `Isolate.dispatch` and `Isolate.send`.

    `body` is bytes when the guest handed it over whole, else an iterator to be read once. `settled`
    waits for everything that belongs to the request; `aclose` says that the client is gone. States
    only move forward: waiting, then answered (or failed), then settled; each is set before anybody
    is woken.

    `on_settled` is called once, by the step in which that happens; it comes too late for a reply
    that is settled. `kept_lines` belongs to whoever reads the log and wants lines by request.
    """

    __slots__ = (
        "_ask_memory_bytes", "_on_close", "_waiter", "answered", "body", "closed", "error", "head",
        "id", "is_settled", "kept_lines", "log_bytes_left", "on_answer", "on_settled", "timer",
        "usage",
    )  # fmt: skip

    def __init__(
        self,
        id: int,
        on_answer: Callable[["Reply"], None],
        on_close: Callable[["Reply"], None],
        log_bytes: int,
        ask_memory_bytes: Callable[[], int] = int,
    ) -> None:
        self.id = id
        self.head = ""
        self.body: bytes | AsyncIterator[bytes] | None = None
        self.error: BelemError | None = None  # instead of head and body
        self.usage = Usage()
        self.is_settled = False
        self.on_settled: Callable[[Reply], None] | None = None
        self.kept_lines: list[KeptLine] | None = None
        # For the isolate only.
        self.answered = False
        self.closed = False
        self.on_answer = on_answer
        self.timer: asyncio.TimerHandle | None = None
        self.log_bytes_left = log_bytes
        self._on_close = on_close
        self._ask_memory_bytes = ask_memory_bytes
        self._waiter: asyncio.Future[None] | None = None

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU time charged so far (shared steps are shared out evenly)."""
        return self.usage.cpu_seconds

    @property
    def cpu_ms(self) -> float:
        """Return the same in milliseconds."""
        return self.usage.cpu_seconds * 1000

    @property
    def memory_bytes(self) -> int:
        """Return the size of the isolate's memory, now or at its end."""
        return self.usage.memory_bytes or self._ask_memory_bytes()

    async def settled(self) -> None:
        """Wait until reply and `waitUntil` are over, cut off, or lost with the isolate."""
        if self.is_settled:
            return
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiter)

    def close(self) -> None:
        """Cancel what is left: the client is gone. Safe to call twice."""
        self._on_close(self)

    async def aclose(self) -> None:
        """Do as `close`, for what closes things that have to be awaited."""
        self._on_close(self)

    # For the isolate only.

    def fail(self, error: BelemError) -> bool:
        """Answer with an error, unless there is an answer; say whether one has to be announced."""
        if self.answered:
            return False
        self.answered = True
        self.error = error
        return True

    def settle(self) -> None:
        self.is_settled = True
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        on_settled, self.on_settled = self.on_settled, None
        if on_settled is not None:
            try:
                on_settled(self)
            except Exception:  # the boundary to the observer: its fault must not end the isolate
                _log.exception("isolate_settled_failed")
