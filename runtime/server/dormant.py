"""A worker that is deployed and not in memory: its next request brings it in."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from belem.isolates import Event, Reply
from belem.runtime.server.dispatch import Target
from belem.runtime.server.errors import WorkerUnavailable
from belem.sdk import BelemError

__all__ = ["DormantWorker"]

_FIRST_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 300.0
_MOST_WAITING: Final = 4096

_log: Final = logging.getLogger("belem.host")


class DormantWorker:
    """Stand in for a worker until somebody asks for it; all who ask meanwhile wait together.

    One that could not be brought in is not tried again at once, and each failure doubles the wait:
    building is work, which a worker that cannot run must not make for every request.
    """

    def __init__(
        self,
        name: str,
        version: str,
        wake: Callable[["DormantWorker"], Awaitable[Target]],
        *,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.version = version
        self._wake = wake
        self._now_s = now_s
        self._waking: asyncio.Task[Target] | None = None
        self._waiting = 0
        self._failures = 0
        self._retry_at_s = 0.0

    @property
    def failed(self) -> bool:
        """Whether it could not be brought in the last time."""
        return self._failures > 0

    async def dispatch(self, event: Event) -> Reply:
        """Bring the worker in, and hand it the event."""
        if self._waking is None:
            if self._now_s() < self._retry_at_s:
                raise _broken()
            self._waking = asyncio.create_task(self._woken())
        if self._waiting >= _MOST_WAITING:
            raise WorkerUnavailable(
                f"{self._waiting} requests wait for the worker to start; the limit is "
                f"{_MOST_WAITING}."
            )
        self._waiting += 1
        try:
            # Shielded: one client that leaves must not end the others' wait.
            target = await asyncio.shield(self._waking)
        finally:
            self._waiting -= 1
        return await target.dispatch(event)

    def acquire(self) -> None:
        """Have no isolate yet: `dispatch` waits for one."""

    def hold_off(self) -> None:
        """Answer with an error for a while: it has just failed."""
        wait_s = min(_FIRST_RETRY_SECONDS * 2.0**self._failures, _LONGEST_RETRY_SECONDS)
        self._failures += 1
        self._retry_at_s = self._now_s() + wait_s

    async def _woken(self) -> Target:
        try:
            return await self._wake(self)
        except WorkerUnavailable:  # somebody deleted it
            raise
        except BelemError as error:
            if not self.failed:  # said once: it fails as long as nobody deploys another version
                _log.error(
                    "worker_failed_to_start",
                    extra={"worker": self.name, "version": self.version, "error": str(error)},
                )
            self.hold_off()
            raise _broken() from error
        finally:
            self._waking = None


def _broken() -> WorkerUnavailable:
    return WorkerUnavailable("The worker's version could not be started; the host's log says why.")
