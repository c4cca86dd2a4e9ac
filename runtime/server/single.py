"""A data plane in the process of its control plane: `belem serve` as it comes."""

import asyncio
import contextlib
import gc
import logging
from collections.abc import AsyncGenerator, Iterable
from typing import Final

from belem.isolates import LogLine
from belem.runtime.control import VersionStore
from belem.runtime.server.compose import open_composer
from belem.runtime.server.dispatch import Dispatch, RequestEvent
from belem.runtime.server.journal import console_line, request_journal
from belem.runtime.server.observability import (
    Invocations,
    Snapshot,
    open_traces,
    process_snapshot,
)
from belem.runtime.server.plane import (
    DRAIN_SECONDS,
    LAST_CALL_SECONDS,
    WAIT_UNTIL_GRACE_SECONDS,
    Plane,
)
from belem.runtime.server.premises import Premises
from belem.runtime.server.serving import serving
from belem.runtime.server.stage import LiveStage
from belem.sdk import BelemError

__all__ = ["restore", "single"]

_AT_ONCE: Final = 200

_host: Final = logging.getLogger("belem.host")


@contextlib.asynccontextmanager
async def single(premises: Premises) -> AsyncGenerator[Plane, None]:
    """Serve the premises' data port from this process."""
    settings = premises.settings
    listener = premises.data_listener
    async with contextlib.AsyncExitStack() as stack:
        composer = await stack.enter_async_context(
            open_composer(
                cache_directory=premises.shared_code_cache(),
                kv_file=premises.kv_file,
                inference_address=premises.inference_address,
                allow_private_fetch=settings.allow_private_fetch,
            )
        )
        invocations = Invocations()
        await stack.enter_async_context(open_traces(invocations))
        write_request = request_journal(access_log=settings.access_log)

        def log(worker: str, line: LogLine) -> None:
            console_line(worker, line)
            invocations.logged(worker, line)

        def on_request(event: RequestEvent) -> None:
            write_request(event)
            invocations.responded(event)

        async def snapshots() -> Iterable[Snapshot]:
            return [process_snapshot(invocations, composer.host)]

        stage = LiveStage(composer, port=listener.port, log=log, on_ai=premises.start_inference)
        stack.push_async_callback(stage.drain, grace_seconds=WAIT_UNTIL_GRACE_SECONDS)
        await restore(premises.store, stage)
        warming = asyncio.create_task(composer.warm())
        stack.push_async_callback(_over, warming)
        dispatch = Dispatch(stage.route, on_request=on_request)
        async with serving(
            dispatch,
            listener,
            drain_seconds=DRAIN_SECONDS,
            last_call_seconds=LAST_CALL_SECONDS,
        ):
            yield Plane(stage, stage.workers, invocations, snapshots)


async def restore(store: VersionStore, stage: LiveStage) -> None:
    """Bring the workers back: those of a small host at once, so that what fails is seen now.

    On a host of many, each comes in with its first request.
    """
    summaries = await store.list()
    stage.enlist(summaries[_AT_ONCE:], store.active)
    for summary in summaries[:_AT_ONCE]:
        try:
            version = await store.active(summary.name)
            if version is not None:
                await stage.go_live(version, await stage.prepare(version.upload))
        except BelemError as error:
            stage.mark_broken(summary.name)
            _host.error(
                "worker_failed_to_start",
                extra={"worker": summary.name, "version": summary.version_id, "error": str(error)},
            )
    # What is here now stays as long as the process: the collector need not walk through it again.
    gc.collect()
    gc.freeze()


async def _over(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
