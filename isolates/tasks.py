"""The one owner of an isolate's tasks: what it starts, it ends."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

__all__ = ["Tasks"]

_log: Final = logging.getLogger("belem.isolates")
_END_SECONDS: Final = 5.0


class Tasks:
    """Background tasks that live no longer than their isolate.

    Not a TaskGroup: one failed op must not cancel its neighbours, and the owner is an object, not a
    block.
    """

    __slots__ = ("_closed", "_loop", "_running")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    def __bool__(self) -> bool:
        """Say whether any is running."""
        return bool(self._running)

    def start(
        self, work: Coroutine[Any, Any, None]
    ) -> asyncio.Task[None]:  # Any: what Coroutine wants
        """Run work that handles its own errors."""
        if self._closed:
            work.close()
            raise RuntimeError("The isolate has ended.")
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def end(self, task: asyncio.Task[None]) -> None:
        """Cancel a task, but not before its first step.

        One cancelled earlier would never run at all, nor would its `finally`, which closes things.
        """
        self._loop.call_soon(task.cancel)

    def cancel(self) -> None:
        """Cancel everything and take nothing more."""
        self._closed = True
        for task in self._running:
            self.end(task)

    async def wait(self) -> None:
        """Wait until what was cancelled has cleaned up; log what will not end."""
        current = asyncio.current_task()
        waiting = {task for task in self._running if task is not current}
        if waiting:
            _, stuck = await asyncio.wait(waiting, timeout=_END_SECONDS)
            if stuck:
                _log.error("isolate_tasks_stuck", extra={"count": len(stuck)})

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("isolate_task_failed", exc_info=error)
