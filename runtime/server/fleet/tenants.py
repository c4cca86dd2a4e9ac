"""Which workers have a process of their own just now: started on demand, ended when idle."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from belem.runtime.server.errors import WorkerUnavailable
from belem.runtime.server.fleet import orders
from belem.runtime.server.fleet.backoff import Backoff
from belem.runtime.server.fleet.channel import Answer
from belem.runtime.server.fleet.hop import Hop
from belem.runtime.server.fleet.waiting import any_set
from belem.runtime.server.observability import Snapshot
from belem.sdk import BelemError, Json

__all__ = ["Process", "TenantBounds", "Tenants"]

_EVICTED_GRACE_SECONDS: Final = 5.0
_SILENT_SECONDS: Final = 30.0
_KILLED_SECONDS: Final = 10.0
_LONGEST_WAIT_SECONDS: Final = 1.0  # of a request, for the next start of what just died

_log: Final = logging.getLogger("belem.fleet")


@dataclass(frozen=True, slots=True)
class TenantBounds:
    """How many processes there may be, and for how long one may do nothing."""

    processes: int = 64
    idle_seconds: float = 300.0
    grace_seconds: float = 20.0
    look_every_seconds: float = 10.0


class Process(Protocol):
    """A live host process (`TenantProcess`)."""

    @property
    def pid(self) -> int: ...
    @property
    def hop(self) -> Hop: ...
    @property
    def counted(self) -> Snapshot: ...
    @property
    def ended(self) -> asyncio.Event: ...
    @property
    def how_it_ended(self) -> str: ...

    async def call(
        self, method: str, values: Mapping[str, Json] | None = None, payload: bytes = b"",
        *, timeout_seconds: float = ...,
    ) -> Answer: ...  # fmt: skip

    async def count(self, *, timeout_seconds: float) -> None: ...

    async def aclose(self, *, grace_seconds: float = ...) -> None: ...


class _Seat:
    """A worker that has a process, or had one. `busy` counts who needs it: it is not ended then."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.process: Process | None = None
        self.busy = 0
        self.used_s = time.monotonic()
        self.backoff = Backoff()
        self.not_before_s = 0.0
        # Starts and changes of what is live, one after another: a change that comes during a start
        # is made known after it.
        self.turn = asyncio.Lock()
        self.starting: asyncio.Task[Process] | None = None

    @property
    def alive(self) -> Process | None:
        process = self.process
        return None if process is None or process.ended.is_set() else process


class Tenants:
    """Keep at most so many processes, each for one worker.

    When there is no room for one more, the idle one that was used longest ago makes it.
    """

    def __init__(
        self,
        start: Callable[[str], Awaitable[Process]],
        *,
        on_end: Callable[[Snapshot], None],
        bounds: TenantBounds | None = None,
    ) -> None:
        self._on_end = on_end
        self._start_process = start
        self._bounds = bounds or TenantBounds()
        self._seats: dict[str, _Seat] = {}
        self._occupied = 0  # processes that are starting, live or ending
        self._tasks: set[asyncio.Task[Any]] = set()  # Any: watches and starts; results unused
        self._closed = False

    @contextlib.asynccontextmanager
    async def hop(self, worker: str) -> AsyncGenerator[Hop, None]:
        """Return the way to the worker's process, busy for the block."""
        async with self.process(worker) as process:
            yield process.hop

    @contextlib.asynccontextmanager
    async def process(self, worker: str) -> AsyncGenerator[Process, None]:
        """Return the worker's process, started if need be, busy for the block."""
        seat = self._seats.get(worker)
        if seat is None:
            seat = self._seats[worker] = _Seat(worker)
        with _busy(seat):
            yield seat.alive or await self._started(seat)

    @property
    def live(self) -> Mapping[str, Process]:
        """The processes that run, by worker."""
        return {
            name: process
            for name, seat in self._seats.items()
            if (process := seat.alive) is not None
        }

    async def refresh(self, worker: str) -> None:
        """Return when no request of the worker is answered by an earlier version any more."""
        seat = self._seats.get(worker)
        if seat is None:
            return  # its next process reads what is live
        with _busy(seat):
            async with seat.turn:
                process = seat.alive
                if process is None:
                    return
                try:
                    await process.call(orders.REFRESH, {"worker": worker})
                except BelemError as error:
                    _log.error(
                        "host_process_not_refreshed",
                        extra={"host_process": worker, "error": error.message},
                    )
                    await process.aclose()

    async def end(self, worker: str) -> None:
        """End the worker's process once its requests are over."""
        seat = self._seats.get(worker)
        if seat is not None and (process := seat.alive) is not None:
            self._let_go(seat)
            await process.aclose(grace_seconds=self._bounds.grace_seconds)

    async def look_after(self) -> None:
        """End what is idle, and what does not answer, until cancelled."""
        while True:
            await asyncio.sleep(self._bounds.look_every_seconds)
            before_s = time.monotonic() - self._bounds.idle_seconds
            for seat in list(self._seats.values()):
                if seat.alive is not None and not seat.busy and seat.used_s < before_s:
                    self._spawn(self.end(seat.worker))
                elif seat.alive is not None:
                    self._spawn(self._check(seat.alive))

    async def aclose(self) -> None:
        """Let every process finish what is in flight, and end it."""
        self._closed = True
        processes = list(self.live.values())
        for seat in self._seats.values():
            seat.process = None  # nobody starts them again
            if seat.starting is not None:
                seat.starting.cancel()
        await asyncio.gather(
            *(process.aclose(grace_seconds=self._bounds.grace_seconds) for process in processes)
        )
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _started(self, seat: _Seat) -> Process:
        starting = seat.starting
        if starting is None or starting.done():
            starting = seat.starting = self._spawn(self._start(seat))
        # Several requests wait for one start, and none of them ends it by leaving.
        return await asyncio.shield(starting)

    async def _start(self, seat: _Seat) -> Process:
        async with seat.turn:
            if (process := seat.alive) is not None:
                return process
            wait_seconds = seat.not_before_s - time.monotonic()
            if wait_seconds > _LONGEST_WAIT_SECONDS or self._closed:
                raise WorkerUnavailable(
                    "The worker's host process ended; it is started again in a moment."
                )
            await asyncio.sleep(max(0.0, wait_seconds))
            await self._make_room()
            self._occupied += 1
            began_s = time.monotonic()
            try:
                process = await self._start_process(seat.worker)
            except BaseException as error:
                self._occupied -= 1
                if isinstance(error, BelemError):
                    self._died(seat, began_s, error.message)
                raise
            seat.process = process
            _log.info(
                "host_process_ready", extra={"host_process": seat.worker, "host_pid": process.pid}
            )
            self._spawn(self._watch(seat, process, began_s))
            return process

    async def _watch(self, seat: _Seat, process: Process, began_s: float) -> None:
        await process.ended.wait()
        self._occupied -= 1
        if seat.process is process:  # else it was asked to end
            seat.process = None
            self._died(seat, began_s, process.how_it_ended)
        await process.aclose()
        self._on_end(process.counted)

    def _died(self, seat: _Seat, began_s: float, how: str) -> None:
        now_s = time.monotonic()
        seat.backoff = seat.backoff.after(now_s - began_s)
        seat.not_before_s = now_s + seat.backoff.wait_seconds
        _log.warning("host_process_ended", extra={"host_process": seat.worker, "detail": how})

    async def _make_room(self) -> None:
        while self._occupied >= self._bounds.processes:
            idle = [
                seat for seat in self._seats.values() if seat.alive is not None and not seat.busy
            ]
            if not idle:
                raise WorkerUnavailable(
                    f"{self._occupied} host processes are busy; the limit is "
                    f"{self._bounds.processes}."
                )
            seat = min(idle, key=lambda seat: seat.used_s)
            process = seat.alive
            assert process is not None
            self._let_go(seat)
            await process.aclose(grace_seconds=_EVICTED_GRACE_SECONDS)
            await any_set(process.ended, timeout_seconds=_KILLED_SECONDS)
            await asyncio.sleep(0)  # its watch counts it out

    def _let_go(self, seat: _Seat) -> None:
        """Forget a process that is about to end: who comes now gets another."""
        _log.info("host_process_idle", extra={"host_process": seat.worker})
        seat.process = None
        if not seat.busy and not seat.turn.locked():
            del self._seats[seat.worker]

    async def _check(self, process: Process) -> None:
        try:
            await process.count(timeout_seconds=_SILENT_SECONDS)
        except BelemError as error:
            _log.error("host_process_silent", extra={"error": error.message})
            await process.aclose()

    def _spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Whoever waits for a start has the error, too; perhaps nobody does.
            level = logging.INFO if isinstance(error, BelemError) else logging.ERROR
            _log.log(level, "host_process_task_failed", extra={"error": str(error)})


@contextlib.contextmanager
def _busy(seat: _Seat) -> Generator[None, None, None]:
    seat.busy += 1
    try:
        yield
    finally:
        seat.busy -= 1
        seat.used_s = time.monotonic()
