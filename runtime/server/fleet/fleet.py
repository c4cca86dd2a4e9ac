"""Several host processes on one listening socket, and a supervisor that runs no guest code."""

import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from belem.runtime.control import Prepared, Upload, Version
from belem.runtime.server.fleet import orders
from belem.runtime.server.fleet.channel import Answer, Call
from belem.runtime.server.fleet.errors import ChannelBroken, HostsUnavailable
from belem.runtime.server.fleet.orders import HostSettings
from belem.runtime.server.fleet.place import Place
from belem.runtime.server.fleet.process import HostProcess
from belem.runtime.server.fleet.shares import Shares, make_shares_file
from belem.runtime.server.fleet.uploads import encode_upload
from belem.runtime.server.fleet.waiting import any_set
from belem.runtime.server.observability import (
    Invocation,
    Invocations,
    Snapshot,
    merge,
    process_snapshot,
)
from belem.runtime.server.plane import DRAIN_SECONDS, WAIT_UNTIL_GRACE_SECONDS, Plane
from belem.runtime.server.premises import Premises

__all__ = ["FleetStage", "fleet"]

_CLOSING_SECONDS: Final = 5.0
_GRACE_SECONDS: Final = DRAIN_SECONDS + WAIT_UNTIL_GRACE_SECONDS + _CLOSING_SECONDS
_PREPARE_SECONDS: Final = 60.0
_FREE_SECONDS: Final = 10.0

_log: Final = logging.getLogger("belem.fleet")


class FleetStage:
    """Implement the control plane's `Stage` over host processes.

    A version is built in one of them, which fills the code cache that they share. It is live when
    every process that takes requests has said so.
    """

    def __init__(self, premises: Premises, places: Sequence[Place]) -> None:
        self._premises = premises
        self._places = places
        self._turns = itertools.cycle(places)

    async def prepare(self, upload: Upload) -> Prepared:
        """Build the upload in a host process, and check it there."""
        host = await self._free_host()
        # Not tried on another host when this one dies: the upload may be why.
        await host.call(
            orders.PREPARE, payload=encode_upload(upload), timeout_seconds=_PREPARE_SECONDS
        )
        return _Checked()

    async def go_live(self, version: Version, prepared: Prepared) -> None:
        """Return when every request is answered by this version."""
        self._premises.start_inference_for(version.upload.bindings)
        await self._refresh(version.upload.worker)

    async def remove(self, worker: str) -> None:
        """Take the worker off the air."""
        await self._refresh(worker)

    def url(self, worker: str) -> str:
        """Return the address at which the worker answers."""
        return f"http://{worker}.localhost:{self._premises.data_listener.port}/"

    async def _refresh(self, worker: str) -> None:
        await asyncio.gather(*(place.refresh(worker) for place in self._places))

    async def _free_host(self) -> HostProcess:
        await any_set(*(place.live for place in self._places), timeout_seconds=_FREE_SECONDS)
        for _ in self._places:
            if (host := next(self._turns).host) is not None:
                return host
        raise HostsUnavailable("No host process runs that could build the version.")


class _Checked:
    """A version that was built and checked; what was built is in the code cache."""

    async def aclose(self) -> None:
        """There is nothing to let go of."""


@contextlib.asynccontextmanager
async def fleet(premises: Premises) -> AsyncGenerator[Plane, None]:
    """Serve the premises' data port from as many host processes as the settings say."""
    made = _Fleet(premises)
    async with made.running():
        for summary in await premises.store.list():
            premises.start_inference_for(summary.bindings)
        stage = FleetStage(premises, made.places)
        yield Plane(stage, made.workers(), made.invocations, made.snapshots)


class _Fleet:
    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._following: set[asyncio.Task[None]] = set()
        self._counted: Snapshot = {}
        self.invocations = Invocations(on_change=self._listened_changed)
        self.places = [
            Place(
                self._settings(str(number)),
                self._start,
                listened=lambda: self.invocations.listened,
                on_end=partial(self._ended, number),
            )
            for number in range(premises.settings.processes)
        ]
        self._shares = make_shares_file(len(self.places))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Keep the processes running; the block starts when requests are answered."""
        keeping: list[asyncio.Task[None]] = []
        try:
            # The first alone: it compiles what is not in the code cache, for all.
            for places in (self.places[:1], self.places[1:]):
                keeping += [_keep(place) for place in places]
                await asyncio.gather(*(place.tried.wait() for place in places))
            if not any(place.live.is_set() for place in self.places):
                raise HostsUnavailable("No host process could be started; the log says why.")
            yield
        finally:
            # Whoever connects from now on is refused; the processes let go of theirs, too.
            self._premises.data_listener.sock.close()
            for place in self.places:
                place.stop()
            try:
                await asyncio.gather(*keeping)
            finally:
                for task in (*keeping, *self._following):
                    task.cancel()
                await asyncio.gather(*keeping, *self._following, return_exceptions=True)
                os.close(self._shares)

    def workers(self) -> Mapping[str, bool]:
        """Return the workers, and whether each one runs."""
        live = [place for place in self.places if place.host is not None]
        return live[0].workers if live else {}

    async def snapshots(self) -> Iterable[Snapshot]:
        """Ask every process for its counts."""
        counted = await asyncio.gather(*(place.snapshot() for place in self.places))
        return [
            process_snapshot(self.invocations, None, process="supervisor"),
            {"workers": self._counted},
            *counted,
        ]

    async def _start(self) -> HostProcess:
        return await HostProcess.start(
            self._premises.data_listener.sock, self._told, shares=self._shares
        )

    async def _told(self, call: Call) -> Answer:
        if call.method != orders.INVOCATION:
            raise ChannelBroken(f"A host process asked for {call.method!r}.")
        self.invocations.publish(Invocation.from_json(call.values))
        return Answer()

    def _ended(self, number: int, snapshot: Snapshot) -> None:
        shares = Shares(self._shares, number)
        shares.leave()
        shares.close()
        # Counters only rise: what a process counted stays counted after its death.
        self._counted = merge([self._counted, snapshot.get("workers", {})])

    def _listened_changed(self, workers: frozenset[str]) -> None:
        task = asyncio.create_task(self._follow(workers))
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow(self, workers: Collection[str]) -> None:
        await asyncio.gather(*(place.follow(workers) for place in self.places))

    def _settings(self, process: str) -> HostSettings:
        premises, settings = self._premises, self._premises.settings
        return HostSettings(
            process=process,
            port=premises.data_listener.port,
            data=premises.data,
            cache=premises.shared_code_cache(),
            inference=premises.inference_address,
            allow_private_fetch=settings.allow_private_fetch,
            access_log=settings.access_log,
            log_format=settings.log_format,
        )


def _keep(place: Place) -> asyncio.Task[None]:
    return asyncio.create_task(place.keep(grace_seconds=_GRACE_SECONDS))
