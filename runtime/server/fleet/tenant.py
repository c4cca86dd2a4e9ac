"""One worker's own host process: made, spoken to, cleared away."""

import asyncio
import contextlib
import itertools
import os
import shutil
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from belem.bindings.aiokv import MAX_VALUE_BYTES, Store
from belem.runtime.control import VersionStore
from belem.runtime.server.fleet import orders
from belem.runtime.server.fleet.channel import Answer
from belem.runtime.server.fleet.hop import Hop
from belem.runtime.server.fleet.orders import HostSettings
from belem.runtime.server.fleet.process import HostProcess
from belem.runtime.server.fleet.relay import TenantRelay
from belem.runtime.server.observability import Invocations, Snapshot
from belem.sdk import BelemError, Json

__all__ = ["TenantProcess", "TenantSite", "start_tenant"]

_BEGIN_SECONDS: Final = 60.0
_ORDER_SECONDS: Final = 30.0
_COUNT_SECONDS: Final = 5.0
_CALLS: Final = 16  # at a time; each may hold a KV value
_BACKLOG: Final = 1024
# Nothing else that the supervisor was told in its environment is a tenant's business.
_ENVIRONMENT: Final = frozenset(
    {
        "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME", "PYTHONPATH",
        "SSL_CERT_DIR", "SSL_CERT_FILE", "TZ", "VIRTUAL_ENV",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TenantSite:
    """What tenants' processes are made from. `engine` is a code cache with the engine in it.

    Every process gets a copy of it in `folders`, and no other cache: code that a tenant could write
    is run by nobody but itself. `sockets` is short, as a socket's path has to be.
    """

    engine: Path
    folders: Path
    sockets: Path
    port: int
    inference: str
    allow_private_fetch: bool
    access_log: bool
    log_format: Literal["text", "json"]
    versions: VersionStore
    store: Store
    invocations: Invocations
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def settings(self, process: str, cache: Path) -> HostSettings:
        """Return what a process is told."""
        return HostSettings(
            process=process,
            port=self.port,
            cache=cache,
            data=None,
            inference=self.inference,
            allow_private_fetch=self.allow_private_fetch,
            access_log=self.access_log,
            log_format=self.log_format,
        )


class TenantProcess:
    """A live host process of one worker."""

    def __init__(
        self, worker: str, host: HostProcess, hop: Hop, folder: Path, socket_path: Path
    ) -> None:
        self.hop = hop
        self.counted: Snapshot = {}
        self._worker = worker
        self._host = host
        self._folder = folder
        self._socket_path = socket_path

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._host.pid

    @property
    def ended(self) -> asyncio.Event:
        """Set once the process is gone."""
        return self._host.ended

    @property
    def how_it_ended(self) -> str:
        """Return what there is to say of the end."""
        return self._host.how_it_ended

    async def call(
        self, method: str, values: Mapping[str, Json] | None = None, payload: bytes = b"",
        *, timeout_seconds: float = _ORDER_SECONDS,
    ) -> Answer:  # fmt: skip
        """Ask the process."""
        return await self._host.call(method, values, payload, timeout_seconds=timeout_seconds)

    async def count(self, *, timeout_seconds: float) -> None:
        """Ask the process for what it counts; of workers, it speaks for its own alone."""
        answer = await self.call(orders.SNAPSHOT, timeout_seconds=timeout_seconds)
        workers = answer.values.get("workers")
        own = workers.get(self._worker) if isinstance(workers, Mapping) else None
        self.counted = {**answer.values, "workers": {} if own is None else {self._worker: own}}

    async def aclose(self, *, grace_seconds: float = 0.0) -> None:
        """Let the process finish, for at most the grace, and leave nothing of it."""
        try:
            if grace_seconds and not self.ended.is_set():
                with contextlib.suppress(BelemError):
                    await self.count(timeout_seconds=_COUNT_SECONDS)
                await self._host.drain(grace_seconds=grace_seconds)
        finally:
            await self._host.aclose()
            self.hop.close()
            await asyncio.to_thread(_clear, self._folder, self._socket_path)


async def start_tenant(
    worker: str, site: TenantSite, *, followed: Collection[str] = ()
) -> TenantProcess:
    """Start a process for the worker; return it when it takes requests."""
    number = next(site.numbers)
    folder, path = site.folders / f"{number}", site.sockets / f"{number}"
    code = folder / "code"
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, _clear, folder, path)
        await asyncio.to_thread(_lay_out, folder, code, site.engine)
        relay = TenantRelay(worker, site.versions, site.store, site.invocations)
        with _listen(path) as listener:
            host = await HostProcess.start(
                listener,
                relay.handle,
                environment={n: v for n, v in os.environ.items() if n in _ENVIRONMENT},
                folder=folder,
                concurrency=_CALLS,
                payload_limit_bytes=MAX_VALUE_BYTES,
            )
        stack.push_async_callback(host.aclose)
        await host.call(
            orders.BEGIN, site.settings(worker, code).to_wire(), timeout_seconds=_BEGIN_SECONDS
        )
        await host.call(orders.REFRESH, {"worker": worker}, timeout_seconds=_ORDER_SECONDS)
        if worker in followed:
            await host.call(orders.LISTEN, {"workers": [worker]}, timeout_seconds=_ORDER_SECONDS)
        await host.call(orders.ACCEPT, timeout_seconds=_ORDER_SECONDS)
        stack.pop_all()
    return TenantProcess(worker, host, Hop(path), folder, path)


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _lay_out(folder: Path, code: Path, engine: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    code.mkdir(mode=0o700)
    # Copies, no links: who writes to a link writes to everybody's file.
    for file in engine.iterdir():
        shutil.copyfile(file, code / file.name)


def _clear(folder: Path, socket_path: Path) -> None:
    socket_path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
