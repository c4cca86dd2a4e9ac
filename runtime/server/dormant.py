"""A worker that is deployed and not in memory: its next request brings it in."""

import asyncio
from collections.abc import Awaitable, Callable

from belem.isolates import Event, Reply
from belem.runtime.server.dispatch import Target

__all__ = ["DormantWorker"]


class DormantWorker:
    """Stand in for a worker until somebody asks for it; all who ask meanwhile wait together."""

    def __init__(
        self, name: str, version: str, wake: Callable[["DormantWorker"], Awaitable[Target]]
    ) -> None:
        self.name = name
        self.version = version
        self._wake = wake
        self._waking: asyncio.Task[Target] | None = None

    async def dispatch(self, event: Event) -> Reply:
        """Bring the worker in, and hand it the event."""
        if self._waking is None:
            self._waking = asyncio.create_task(self._woken())
        # Shielded: one client that leaves must not end the others' wait.
        target = await asyncio.shield(self._waking)
        return await target.dispatch(event)

    def acquire(self) -> None:
        """Have no isolate yet: `dispatch` waits for one."""

    async def _woken(self) -> Target:
        try:
            return await self._wake(self)
        finally:
            self._waking = None  # if it failed for want of something, the next request tries again
