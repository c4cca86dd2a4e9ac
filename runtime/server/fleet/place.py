"""One place in a fleet: a host process, and after its death the next one."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final

from belem.runtime.server.fleet import orders
from belem.runtime.server.fleet.backoff import Backoff
from belem.runtime.server.fleet.orders import HostSettings
from belem.runtime.server.fleet.process import HostProcess
from belem.runtime.server.fleet.waiting import any_set
from belem.runtime.server.observability import Snapshot
from belem.sdk import BelemError, Json

__all__ = ["Place", "StartHost"]

_BEGIN_SECONDS: Final = 300.0  # compiling the engine, and every worker that was live
_REFRESH_SECONDS: Final = 30.0
_ORDER_SECONDS: Final = 10.0
_LOOK_EVERY_SECONDS: Final = 10.0
_SNAPSHOT_SECONDS: Final = 30.0  # a host that does not answer for so long has hung
_SCRAPE_SECONDS: Final = 5.0
_KILLED_SECONDS: Final = 10.0

_log: Final = logging.getLogger("belem.fleet")

StartHost = Callable[[], Awaitable[HostProcess]]


class Place:
    """Keep one host process running. Each goes forward only: starting, live, ended.

    A live process is told of every change and waited for. One that is starting reads what is live
    from the store, and is told of what changed meanwhile before it may take requests: in between
    lies no `await`, so no change is lost.
    """

    def __init__(
        self,
        settings: HostSettings,
        start: StartHost,
        *,
        listened: Callable[[], Collection[str]],
        on_end: Callable[[Snapshot], None],
        backoff: Backoff | None = None,
    ) -> None:
        self.settings = settings
        self.workers: Mapping[str, bool] = {}
        self.tried = asyncio.Event()  # the first start succeeded or failed
        self.live = asyncio.Event()
        self._start = start
        self._listened = listened
        self._on_end = on_end
        self._backoff = backoff or Backoff()
        self._host: HostProcess | None = None
        self._missed: set[str] = set()
        self._counted: Snapshot = {}
        self._stopping = asyncio.Event()

    @property
    def host(self) -> HostProcess | None:
        """The process, if it is live."""
        return self._host if self.live.is_set() else None

    async def keep(self, *, grace_seconds: float) -> None:
        """Keep a process running until `stop`; then let it finish, for at most the grace."""
        backoff = self._backoff
        while not self._stopping.is_set():
            began_s = time.monotonic()
            try:
                how = await self._live_once(grace_seconds)
            except Exception as error:  # the boundary of a process: the place has others
                _log.exception("host_process_failed")
                how = f"failed: {type(error).__name__}"
            self.tried.set()
            if self._stopping.is_set():
                return
            backoff = backoff.after(time.monotonic() - began_s)
            _log.warning(
                "host_process_ended",
                extra={
                    "host_process": self.settings.process,
                    "detail": how,
                    "restart_in_seconds": backoff.wait_seconds,
                },
            )
            await any_set(self._stopping, timeout_seconds=backoff.wait_seconds)

    def stop(self) -> None:
        """End the process once it has finished what is in flight; at once if it takes nothing."""
        self._stopping.set()
        if self._host is not None and not self.live.is_set():
            self._host.kill()

    async def refresh(self, worker: str) -> None:
        """Return when no request to this process is answered by an earlier version any more."""
        host = self.host
        if host is None:
            self._missed.add(worker)
            return
        try:
            await host.call(orders.REFRESH, {"worker": worker}, timeout_seconds=_REFRESH_SECONDS)
        except BelemError as error:
            # Gone, hung or broken: the next one reads the store.
            _log.error(
                "host_process_not_refreshed",
                extra={"host_process": self.settings.process, "error": error.message},
            )
            host.kill()
            await any_set(host.ended, timeout_seconds=_KILLED_SECONDS)

    async def snapshot(self) -> Snapshot:
        """Return what the process counts, or what it counted when it was last asked."""
        host = self.host
        if host is not None:
            with contextlib.suppress(BelemError):
                await self._count(host, timeout_seconds=_SCRAPE_SECONDS)
        return self._counted

    async def follow(self, workers: Collection[str]) -> None:
        """Tell the process whose invocations are followed; a later start is told anyway."""
        host = self.host
        if host is not None:
            with contextlib.suppress(BelemError):
                await _follow(host, workers)

    async def _live_once(self, grace_seconds: float) -> str:
        """Run one process from its start to its end, and say how it ended."""
        self._missed.clear()  # what changes from here on may be too late for its reading
        try:
            host = await self._start()
        except BelemError as error:
            return error.message
        self._host = host
        try:
            if not self._stopping.is_set():
                await self._begin(host)
            self.tried.set()
            await self._watch(host)
            if self._stopping.is_set():
                await host.drain(grace_seconds=grace_seconds)
        except BelemError as error:
            return f"{host.how_it_ended}: {error.message}"
        finally:
            self.live.clear()
            self._host = None
            await host.aclose()
            counted, self._counted = self._counted, {}
            self._on_end(counted)
        return host.how_it_ended

    async def _begin(self, host: HostProcess) -> None:
        answer = await host.call(
            orders.BEGIN, self.settings.to_wire(), timeout_seconds=_BEGIN_SECONDS
        )
        self.workers = _runs(answer.values.get("workers"))
        while self._missed:
            worker = self._missed.pop()
            await host.call(orders.REFRESH, {"worker": worker}, timeout_seconds=_REFRESH_SECONDS)
        self.live.set()
        if listened := self._listened():
            await _follow(host, listened)
        await host.call(orders.ACCEPT, timeout_seconds=_ORDER_SECONDS)
        _log.info(
            "host_process_ready",
            extra={"host_process": self.settings.process, "host_pid": host.pid},
        )

    async def _watch(self, host: HostProcess) -> None:
        while not await any_set(host.ended, self._stopping, timeout_seconds=_LOOK_EVERY_SECONDS):
            await self._count(host, timeout_seconds=_SNAPSHOT_SECONDS)

    async def _count(self, host: HostProcess, *, timeout_seconds: float) -> None:
        answer = await host.call(orders.SNAPSHOT, timeout_seconds=timeout_seconds)
        self._counted = answer.values


async def _follow(host: HostProcess, workers: Collection[str]) -> None:
    await host.call(orders.LISTEN, {"workers": sorted(workers)}, timeout_seconds=_ORDER_SECONDS)


def _runs(value: Json) -> Mapping[str, bool]:
    return (
        {name: runs is True for name, runs in value.items()} if isinstance(value, Mapping) else {}
    )
