"""Inside a host process: isolates and bindings, told by a supervisor what is live."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final, Protocol

from belem.bindings.aiokv import Store
from belem.runtime.control import SQLiteVersionStore, Version
from belem.runtime.server.compose import Composer, open_composer
from belem.runtime.server.dispatch import Dispatch
from belem.runtime.server.fleet import orders
from belem.runtime.server.fleet.channel import Answer, Call, Channel, open_channel
from belem.runtime.server.fleet.errors import ChannelBroken
from belem.runtime.server.fleet.following import Following
from belem.runtime.server.fleet.fronted import FrontedProtocol
from belem.runtime.server.fleet.orders import HostSettings
from belem.runtime.server.fleet.remote import ChannelStore, ChannelVersions
from belem.runtime.server.fleet.shares import Shares
from belem.runtime.server.fleet.uploads import decode_upload
from belem.runtime.server.fleet.waiting import any_set
from belem.runtime.server.journal import request_journal
from belem.runtime.server.logs import set_up_logging
from belem.runtime.server.observability import Invocations, open_traces
from belem.runtime.server.plane import DRAIN_SECONDS, LAST_CALL_SECONDS, WAIT_UNTIL_GRACE_SECONDS
from belem.runtime.server.protocol import BoundedHttpProtocol
from belem.runtime.server.serving import Listener, serving
from belem.runtime.server.single import restore
from belem.runtime.server.stage import LiveStage
from belem.sdk import BelemError

__all__ = ["run_host"]

_log: Final = logging.getLogger("belem.host")


async def run_host(
    channel_socket: socket.socket, listener_socket: socket.socket, shares: int | None
) -> None:
    """Run a host process until it is drained, or its supervisor is gone."""
    orderly = Orders()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, orderly.stop.set)
    async with open_channel(channel_socket, orderly.handle) as channel:
        running = asyncio.create_task(_run(orderly, channel, Listener(listener_socket), shares))
        orphaned = asyncio.create_task(channel.closed.wait())
        try:
            await asyncio.wait({running, orphaned}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
        finally:
            for task in (running, orphaned):
                task.cancel()
            await asyncio.gather(running, orphaned, return_exceptions=True)


class Orders:
    """What the supervisor has said. Forward only: waiting, begun, accepting, stopping."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.settings: asyncio.Future[HostSettings] = loop.create_future()
        self.hosted: asyncio.Future[Hosted] = loop.create_future()
        self.accept = asyncio.Event()
        self.accepting = asyncio.Event()
        self.stop = asyncio.Event()

    async def handle(self, call: Call) -> Answer:
        """Do what the supervisor asks."""
        match call.method:
            case orders.BEGIN:
                if self.settings.done():
                    raise ChannelBroken("A host process begins once.")
                self.settings.set_result(HostSettings.from_wire(call.values))
                hosted = await asyncio.shield(self.hosted)
                return Answer({"workers": dict(hosted.stage.workers)})
            case orders.ACCEPT:
                self.accept.set()
                await self.accepting.wait()
                return Answer()
            case orders.DRAIN:
                self.stop.set()
                return Answer()
            case _:
                return await (await asyncio.shield(self.hosted)).handle(call)


class ActiveVersions(Protocol):
    """Where a host process finds what is live."""

    async def active(self, worker: str, /) -> Version | None:
        """Return the worker's active version, or None."""
        ...


class Hosted:
    """A stage that follows what is kept, worker by worker, as the supervisor says."""

    def __init__(
        self,
        settings: HostSettings,
        versions: ActiveVersions,
        composer: Composer,
        stage: LiveStage,
        following: Following,
    ) -> None:
        self.stage = stage
        self._settings = settings
        self._versions = versions
        self._composer = composer
        self._following = following
        # One change after another, in the order in which they were told.
        self._turn = asyncio.Lock()

    async def handle(self, call: Call) -> Answer:
        """Do what the supervisor asks."""
        match call.method:
            case orders.PREPARE:
                prepared = await self.stage.prepare(decode_upload(call.payload))
                # Its image is in the cache now, where every host process finds it.
                await prepared.aclose()
                return Answer()
            case orders.REFRESH:
                async with self._turn:
                    await self._refresh(call.text("worker"))
                return Answer()
            case orders.SNAPSHOT:
                return Answer(self._following.snapshot(self._settings.process, self._composer.host))
            case orders.LISTEN:
                self._following.follow(call.texts("workers"))
                return Answer()
            case _:
                raise ChannelBroken(f"There is no order {call.method!r}.")

    async def _refresh(self, worker: str) -> None:
        try:
            version = await self._versions.active(worker)
            if version is None:
                await self.stage.remove(worker)
            else:
                await self.stage.go_live(version, await self.stage.prepare(version.upload))
        except BelemError as error:
            self.stage.mark_broken(worker)
            _log.error("worker_failed_to_start", extra={"worker": worker, "error": str(error)})


async def _run(orderly: Orders, channel: Channel, listener: Listener, shares: int | None) -> None:
    settings = await orderly.settings
    set_up_logging(settings.log_format)
    async with _hosted(settings, channel) as (hosted, dispatch):
        orderly.hosted.set_result(hosted)
        await any_set(orderly.accept, orderly.stop)
        if orderly.stop.is_set():
            return
        share = None if shares is None else Shares(shares, int(settings.process))
        if share is not None:
            share.join()
        protocol = BoundedHttpProtocol if settings.data is not None else FrontedProtocol
        async with serving(
            dispatch,
            listener,
            drain_seconds=DRAIN_SECONDS,
            share=share,
            protocol=protocol,
            last_call_seconds=LAST_CALL_SECONDS if settings.data is not None else 0.0,
        ):
            orderly.accepting.set()
            await orderly.stop.wait()
            if share is not None:
                share.leave()


@contextlib.asynccontextmanager
async def _hosted(
    settings: HostSettings, channel: Channel
) -> AsyncGenerator[tuple[Hosted, Dispatch], None]:
    """Open everything that serves requests, and bring back what was live."""
    async with contextlib.AsyncExitStack() as stack:
        kv: Path | Store = ChannelStore(channel)
        versions: ActiveVersions = ChannelVersions(channel)
        store: SQLiteVersionStore | None = None
        if settings.data is not None:
            kv = settings.data / "kv.sqlite"
            versions = store = SQLiteVersionStore(settings.data)
            stack.push_async_callback(store.aclose)
        composer = await stack.enter_async_context(
            open_composer(
                cache_directory=settings.cache,
                kv_file=kv,
                inference_address=settings.inference,
                allow_private_fetch=settings.allow_private_fetch,
            )
        )
        invocations = Invocations()
        await stack.enter_async_context(open_traces(invocations))
        following = Following(
            invocations,
            write_request=request_journal(access_log=settings.access_log),
            tell=channel.offer,
        )
        stage = LiveStage(composer, port=settings.port, log=following.logged, on_ai=_nothing)
        stack.push_async_callback(stage.drain, grace_seconds=WAIT_UNTIL_GRACE_SECONDS)
        await composer.warm()
        if store is not None:
            await restore(store, stage)
        hosted = Hosted(settings, versions, composer, stage, following)
        yield hosted, Dispatch(stage.route, on_request=following.responded)


def _nothing() -> None:
    """The supervisor starts the inference daemon: it knows the bindings of what it deploys."""
