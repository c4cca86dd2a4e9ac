"""Threads that own SQLite connections and run jobs in batches, a transaction for each batch.

SQLite blocks, so nothing of it runs on the event loop. A lane's threads share one queue; whoever is
free takes all that waits (up to a bound), runs it between BEGIN and COMMIT, and wakes the loop once
for the whole batch. That is what makes concurrent writes cheap: the commit's fsync, the thread
switch and the wake-up are paid once for the batch. A future is resolved after COMMIT, never before:
a write that was acknowledged is on the disk.

The queue is bounded by a semaphore that `run` holds until its job is over or cancelled, so callers
wait instead of piling up. A job whose caller was cancelled before its turn is skipped; one that has
begun is finished, whole.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from belem.bindings.aiokv.errors import StoreBusy, StoreClosed, StoreError
from belem.bindings.aiokv.sqlite_errors import translate

__all__ = ["Job", "Lane"]

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]

_MAX_WAITING: Final = 1024
_MAX_BATCH_JOBS: Final = 128
# A batch also ends after this much payload, so that one transaction stays a bounded piece of work.
_MAX_BATCH_BYTES: Final = 32 * 1024 * 1024

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Item:
    job: Job[object]
    size_bytes: int
    future: asyncio.Future[Any]  # Any: each item's future has its own job's result type


@dataclass(frozen=True, slots=True)
class _Outcome:
    item: _Item
    result: object = None
    error: BaseException | None = None


class Lane:
    """Run jobs on threads that each own a connection."""

    def __init__(
        self,
        name: str,
        connect: Callable[[], sqlite3.Connection],
        *,
        threads: int,
        begin: str,
        max_waiting: int = _MAX_WAITING,
    ) -> None:
        self._name = name
        self._connect = connect
        self._threads = threads
        self._begin = begin
        self._slots = asyncio.Semaphore(max_waiting)
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: list[asyncio.Future[None]] = []
        self._closing = False

    async def start(self) -> None:
        """Start the threads; return when each has its connection, raise when one has not."""
        self._loop = asyncio.get_running_loop()
        ready = [self._loop.create_future() for _ in range(self._threads)]
        for index, future in enumerate(ready):
            ended = self._loop.create_future()
            self._ended.append(ended)
            threading.Thread(
                target=self._main, args=(future, ended), name=f"{self._name}-{index}", daemon=True
            ).start()
        for failure in await asyncio.gather(*ready, return_exceptions=True):
            if isinstance(failure, BaseException):
                await self.aclose()
                raise failure

    async def run(self, job: Job[T], *, size_bytes: int = 0) -> T:
        """Run the job on one of the threads; wait while too many are waiting already."""
        async with self._slots:
            if self._loop is None or self._closing:
                raise StoreClosed("The store is not open.")
            future: asyncio.Future[T] = self._loop.create_future()
            self._queue.put(_Item(job, size_bytes, future))
            return await future

    async def aclose(self) -> None:
        """Finish the jobs already accepted, then end the threads."""
        if not self._closing:
            self._closing = True
            for _ in self._ended:
                self._queue.put(None)
        # Shielded: cancelling one closer must not make a second believe that the threads are gone.
        await asyncio.shield(asyncio.gather(*self._ended))

    # The rest runs on the lane's threads, but for _publish.

    def _main(self, ready: asyncio.Future[None], ended: asyncio.Future[None]) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # the boundary of a thread: `start` raises it
            self._on_loop(_settle, ready, translate(error))
            self._on_loop(_settle, ended, None)
            return
        self._on_loop(_settle, ready, None)
        try:
            while batch := self._take():
                self._on_loop(self._publish, self._execute(connection, batch))
        finally:
            connection.close()
            self._on_loop(_settle, ended, None)

    def _take(self) -> list[_Item]:
        """Wait for a job and take those behind it too; an empty batch ends the thread."""
        batch: list[_Item] = []
        size_bytes = 0
        item = self._queue.get()
        while item is not None:
            if not item.future.cancelled():
                batch.append(item)
                size_bytes += item.size_bytes
            if len(batch) >= _MAX_BATCH_JOBS or size_bytes >= _MAX_BATCH_BYTES:
                return batch
            try:
                item = self._queue.get(block=not batch)
            except queue.Empty:
                return batch
        if batch:
            self._queue.put(None)  # the end comes after this batch
        return batch

    def _execute(self, connection: sqlite3.Connection, batch: Sequence[_Item]) -> list[_Outcome]:
        try:
            return self._transact(connection, batch)
        except Exception as error:  # the boundary of a job: its caller gets it
            if connection.in_transaction:
                connection.rollback()
            failure = translate(error)
            if len(batch) == 1 or isinstance(failure, StoreBusy):
                return [_Outcome(item, error=failure) for item in batch]
        # One job's failure is not its neighbours': each again, in a transaction of its own.
        logger.warning("aiokv_batch_split", extra={"lane": self._name, "jobs": len(batch)})
        return [outcome for item in batch for outcome in self._execute(connection, [item])]

    def _transact(self, connection: sqlite3.Connection, batch: Sequence[_Item]) -> list[_Outcome]:
        connection.execute(self._begin)
        outcomes: list[_Outcome] = []
        for item in batch:
            try:
                outcomes.append(_Outcome(item, item.job(connection)))
            except StoreError as error:  # the job changed its mind before writing anything
                outcomes.append(_Outcome(item, error=error))
        connection.execute("COMMIT")
        return outcomes

    def _publish(self, outcomes: Sequence[_Outcome]) -> None:
        for outcome in outcomes:
            if not outcome.item.future.done():  # else its caller was cancelled
                if outcome.error is None:
                    outcome.item.future.set_result(outcome.result)
                else:
                    outcome.item.future.set_exception(outcome.error)

    def _on_loop(self, callback: Callable[..., None], *args: object) -> None:
        if self._loop is None or self._loop.is_closed():
            return
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the loop was closed in between; nobody is left to tell
            logger.debug("aiokv_loop_gone", extra={"lane": self._name})


def _settle(future: asyncio.Future[None], error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
