"""Deploy and delete: the order of steps that keeps the store and what is live in agreement."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from belem.runtime.control.errors import ScriptNotFound
from belem.runtime.control.versions import Upload, Version, VersionStore, WorkerSummary

__all__ = ["Deployed", "Deployments", "Prepared", "Stage"]


class Prepared(Protocol):
    """A version that was built and checked, and can go live without a wait."""

    async def aclose(self) -> None:
        """Let go of it, unused."""
        ...


class Stage(Protocol):
    """Where workers go live. Building is apart, so that only going live needs a turn."""

    async def prepare(self, upload: Upload, /) -> Prepared:
        """Build the upload and run its top level; raise `ApiError` if it cannot serve."""
        ...

    async def go_live(self, version: Version, prepared: Prepared, /) -> None:
        """Send the worker's new requests to this version. Does not fail."""
        ...

    async def remove(self, worker: str, /) -> None:
        """Take the worker off the air; requests in flight finish."""
        ...

    def url(self, worker: str, /) -> str:
        """Return the address at which the worker answers."""
        ...


@dataclass(frozen=True, slots=True)
class Deployed:
    """What a deploy reports."""

    version: Version
    url: str
    startup_ms: float


class Deployments:
    """Change what is live, one change at a time.

    A deploy is: build and check (the slow part, which changes nothing), keep and activate in one
    transaction, then go live. A crash between the last two steps brings the new version up at the
    next start.
    """

    def __init__(self, store: VersionStore, stage: Stage) -> None:
        self._store = store
        self._stage = stage
        # One change after another: the order in the store is the order in which versions go live.
        self._turn = asyncio.Lock()
        self._activating: set[asyncio.Task[Version]] = set()

    async def deploy(self, upload: Upload) -> Deployed:
        """Build, keep and activate the upload."""
        started_s = time.perf_counter()
        prepared = await self._stage.prepare(upload)
        startup_ms = (time.perf_counter() - started_s) * 1000
        # Once the version is kept it must go live, so a client that hangs up does not cancel this
        # part.
        activating = asyncio.create_task(self._activate(upload, prepared))
        self._activating.add(activating)
        activating.add_done_callback(self._activating.discard)
        version = await asyncio.shield(activating)
        return Deployed(version, self._stage.url(upload.worker), startup_ms)

    async def delete(self, worker: str) -> None:
        """Forget the worker and take it off the air."""
        async with self._turn:
            if not await self._store.delete(worker):
                raise ScriptNotFound(f"No worker has the name {worker!r}.")
            await self._stage.remove(worker)

    async def list(self) -> Sequence[WorkerSummary]:
        """Return every worker, by name."""
        return await self._store.list()

    def url(self, worker: str) -> str:
        """Return the address at which the worker answers."""
        return self._stage.url(worker)

    async def _activate(self, upload: Upload, prepared: Prepared) -> Version:
        async with self._turn:
            try:
                version = await self._store.deploy(upload)
            except BaseException:
                await prepared.aclose()
                raise
            await self._stage.go_live(version, prepared)
            return version
