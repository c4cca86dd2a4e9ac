"""A data plane for tenants that do not trust each other: a host process for every worker."""

import asyncio
import contextlib
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import AsyncGenerator, Collection, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from belem.bindings.aiokv import SQLiteStore, Store
from belem.runtime.control import Prepared, Upload, Version
from belem.runtime.server.dispatch import RequestEvent
from belem.runtime.server.fleet import orders
from belem.runtime.server.fleet.channel import Answer, Call
from belem.runtime.server.fleet.errors import ChannelBroken
from belem.runtime.server.fleet.front import Front
from belem.runtime.server.fleet.hardening import close_to_debuggers
from belem.runtime.server.fleet.hop import Hop
from belem.runtime.server.fleet.landlock import files_to_run, is_available
from belem.runtime.server.fleet.process import HostProcess
from belem.runtime.server.fleet.tenant import TenantProcess, TenantSite, start_tenant
from belem.runtime.server.fleet.tenants import TenantBounds, Tenants
from belem.runtime.server.fleet.uploads import encode_upload
from belem.runtime.server.journal import request_journal
from belem.runtime.server.observability import (
    Invocations,
    Snapshot,
    merge,
    open_traces,
    process_snapshot,
)
from belem.runtime.server.observability.traces import traces_asked_for
from belem.runtime.server.plane import DRAIN_SECONDS, LAST_CALL_SECONDS, Plane
from belem.runtime.server.premises import Premises
from belem.runtime.server.serving import serving
from belem.sdk import BelemError

__all__ = ["separate"]

_BEGIN_SECONDS: Final = 300.0
_PREPARE_SECONDS: Final = 60.0
_SCRAPE_SECONDS: Final = 5.0
_CLOCK_SLACK_SECONDS: Final = 2.0  # of a file system

_log: Final = logging.getLogger("belem.fleet")


class SeparateStage:
    """Implement the control plane's `Stage`: each worker's process builds and checks its own."""

    def __init__(self, plane: "_Separate") -> None:
        self._plane = plane

    async def prepare(self, upload: Upload) -> Prepared:
        """Build the upload in its worker's process, and check it there."""
        async with self._plane.tenants.process(upload.worker) as process:
            await process.call(
                orders.PREPARE, payload=encode_upload(upload), timeout_seconds=_PREPARE_SECONDS
            )
        return _Checked()

    async def go_live(self, version: Version, prepared: Prepared) -> None:
        """Return when every request is answered by this version."""
        worker = version.upload.worker
        self._plane.premises.start_inference_for(version.upload.bindings)
        await self._plane.tenants.refresh(worker)
        self._plane.workers.add(worker)

    async def remove(self, worker: str) -> None:
        """Take the worker off the air; its process ends when its requests have."""
        self._plane.workers.discard(worker)
        await self._plane.tenants.refresh(worker)
        self._plane.end_later(worker)

    def url(self, worker: str) -> str:
        """Return the address at which the worker answers."""
        return f"http://{worker}.localhost:{self._plane.premises.data_listener.port}/"


class _Checked:
    """A version that was built and checked; what was built is in its process's code cache."""

    async def aclose(self) -> None:
        """There is nothing to let go of."""


@contextlib.asynccontextmanager
async def separate(premises: Premises) -> AsyncGenerator[Plane, None]:
    """Serve the premises' data port; every worker runs in a process of its own."""
    close_to_debuggers()  # it has every tenant's secrets
    if (why := _files_within_reach(premises)) is not None:
        _log.warning("files_not_kept_apart", extra={"detail": why})
    async with contextlib.AsyncExitStack() as stack:
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="belem-hosts-")))
        store = await stack.enter_async_context(SQLiteStore(premises.kv_file))
        plane = _Separate(premises, store, sockets)
        await stack.enter_async_context(open_traces(plane.invocations))
        await plane.prepare_engine()
        for summary in await premises.store.list():
            plane.workers.add(summary.name)
            premises.start_inference_for(summary.bindings)
        stack.push_async_callback(plane.aclose)
        looking = asyncio.create_task(plane.tenants.look_after())
        stack.callback(looking.cancel)
        front = Front(plane, on_failure=plane.on_failure)
        async with serving(
            front,
            premises.data_listener,
            drain_seconds=DRAIN_SECONDS,
            last_call_seconds=LAST_CALL_SECONDS,
        ):
            workers = dict.fromkeys(sorted(plane.workers), True)
            yield Plane(SeparateStage(plane), workers, plane.invocations, plane.snapshots)


def _files_within_reach(premises: Premises) -> str | None:
    """Say why a tenant's process could open files that are none of its business, if it could."""
    if not is_available():
        return "this system has no Landlock"
    for path in (premises.data, premises.token_file.resolve()):
        for allowed in files_to_run():
            if path.is_relative_to(allowed):
                return f"{path} is in {allowed}, which every process reads to run"
    return None


class _Separate:
    """The processes, and what the front knows: which workers there are, and who is followed."""

    def __init__(self, premises: Premises, store: Store, sockets: Path) -> None:
        self.premises = premises
        self.workers: set[str] = set()
        self.invocations = Invocations(on_change=self._followed_changed)
        settings = premises.settings
        self._write_request = request_journal(access_log=settings.access_log)
        self._tracing = traces_asked_for(os.environ)
        self._followed: frozenset[str] = frozenset()
        self._counted: Snapshot = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._site = TenantSite(
            engine=premises.data / "engine",
            folders=premises.data / "processes",
            sockets=sockets,
            port=premises.data_listener.port,
            inference=premises.inference_address,
            allow_private_fetch=settings.allow_private_fetch,
            access_log=settings.access_log,
            log_format=settings.log_format,
            versions=premises.store,
            store=store,
            invocations=self.invocations,
        )
        self.tenants = Tenants(
            self._start,
            on_end=self._keep_counts,
            bounds=TenantBounds(processes=settings.max_processes),
        )

    def knows(self, worker: str) -> bool:
        """Return whether the worker is deployed."""
        return worker in self.workers

    def hop(self, worker: str) -> AbstractAsyncContextManager[Hop]:
        """Return the way to the worker's process."""
        return self.tenants.hop(worker)

    def on_failure(self, event: RequestEvent) -> None:
        """Take a request that the front itself had to answer."""
        self._write_request(event)
        self.invocations.responded(event)

    def end_later(self, worker: str) -> None:
        """End the worker's process without being waited for."""
        self._spawn(self.tenants.end(worker))

    async def prepare_engine(self) -> None:
        """Let a process that runs no tenant's code compile the engine, for copies to be made of."""
        site = self._site
        await asyncio.to_thread(_make_folders, site)
        began_s = time.time()
        with socket.socket(socket.AF_UNIX) as nobody:
            host = await HostProcess.start(nobody, _answer_nothing)
        async with host:
            settings = site.settings("engine", site.engine).to_wire()
            await host.call(orders.BEGIN, settings, timeout_seconds=_BEGIN_SECONDS)
        await asyncio.to_thread(_drop_unused, site.engine, began_s)

    async def snapshots(self) -> Iterable[Snapshot]:
        """Ask every process for its counts."""
        live = self.tenants.live.values()
        asked = (process.count(timeout_seconds=_SCRAPE_SECONDS) for process in live)
        await asyncio.gather(*asked, return_exceptions=True)
        return [
            process_snapshot(self.invocations, None, process="supervisor"),
            {"workers": self._counted},
            *(process.counted for process in live),
        ]

    async def aclose(self) -> None:
        """End every process once its requests are over."""
        await self.tenants.aclose()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _start(self, worker: str) -> TenantProcess:
        return await start_tenant(worker, self._site, followed=self._who(worker))

    def _who(self, worker: str) -> Collection[str]:
        return [worker] if self._tracing or worker in self._followed else []

    def _keep_counts(self, snapshot: Snapshot) -> None:
        self._counted = merge([self._counted, snapshot.get("workers", {})])

    def _followed_changed(self, workers: frozenset[str]) -> None:
        changed = self._followed ^ workers
        self._followed = workers
        for worker in changed:
            self._spawn(self._follow(worker))

    async def _follow(self, worker: str) -> None:
        process = self.tenants.live.get(worker)
        if process is not None:
            names = list(self._who(worker))
            with contextlib.suppress(BelemError):
                await process.call(orders.LISTEN, {"workers": names})

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _make_folders(site: TenantSite) -> None:
    shutil.rmtree(site.folders, ignore_errors=True)  # what a kill left
    for folder in (site.engine, site.folders):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _drop_unused(engine: Path, since_s: float) -> None:
    """Forget what earlier releases compiled: a process's start marks what it uses."""
    for facts in engine.glob("*.json"):
        if facts.stat().st_mtime < since_s - _CLOCK_SLACK_SECONDS:
            facts.with_suffix(".cwasm").unlink(missing_ok=True)
            facts.unlink()


async def _answer_nothing(call: Call) -> Answer:
    raise ChannelBroken(f"A host process asked for {call.method!r}.")
