"""Where deployed workers run: routes to live workers, and the control plane's `Stage`."""

import asyncio
import heapq
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from belem.isolates import LoadError, LogLine, MemoryLimitExceeded
from belem.runtime.control import Prepared, Upload, Version, WorkerSummary
from belem.runtime.control.errors import NoHandlers, ValidationFailed
from belem.runtime.server.compose import Composer
from belem.runtime.server.dispatch import Route, Target
from belem.runtime.server.dormant import DormantWorker
from belem.runtime.server.errors import WorkerUnavailable
from belem.runtime.server.live import LiveWorker
from belem.runtime.server.pool import Revision
from belem.sdk import SystemFault

__all__ = ["LiveStage", "PreparedRevision", "WorkerLog"]

WorkerLog = Callable[[str, LogLine], None]
Load = Callable[[str], Awaitable[Version | None]]
"""From a worker's name to the version that is active."""

_FIRST_SEGMENT: Final = re.compile(rb"/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?=/|$)")
_REMOVED_GRACE_SECONDS: Final = 10.0
_MOST_AWAKE: Final = 1_000
_REST_EVERY_SECONDS: Final = 30.0
_LOOK_AFTER_PART: Final = 0.1  # of so many, woken since: a crawl must not bring all in at once
_RESTED_AT_ONCE: Final = 50  # then the loop has a turn for requests
_REST_PAUSE_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class PreparedRevision:
    """A built version."""

    revision: Revision

    async def aclose(self) -> None:
        """Let go of it, unused."""
        await self.revision.aclose()


class LiveStage:
    """All live workers of a process, found by host name or by the first part of the path."""

    def __init__(
        self,
        composer: Composer,
        *,
        port: int,
        log: WorkerLog,
        on_ai: Callable[[], None],
        most_awake: int = _MOST_AWAKE,
    ) -> None:
        self._composer = composer
        self._port = port
        self._log = log
        self._on_ai = on_ai
        self._workers: dict[str, LiveWorker | DormantWorker] = {}
        self._load: Load | None = None
        self._most_awake = most_awake
        self._woken = 0  # since it was last looked for too many
        self._resting: asyncio.TimerHandle | None = None
        self._leaving: dict[asyncio.Task[None], LiveWorker] = {}

    @property
    def workers(self) -> Mapping[str, bool]:
        """The workers by name, and whether each one runs, or would if it were asked."""
        return {
            name: isinstance(at, LiveWorker) or not at.failed
            for name, at in sorted(self._workers.items())
        }

    def url(self, worker: str) -> str:
        """Return the address at which the worker answers."""
        return f"http://{worker}.localhost:{self._port}/"

    def route(self, host: str, path: bytes) -> Route | None:
        """Find the worker: `<name>.localhost` (or of any domain), else `/<name>/…` on any host."""
        label, dot, _ = host.partition(".")
        if dot and (worker := self._workers.get(label)) is not None:
            return Route(worker)
        match = _FIRST_SEGMENT.match(path)
        if match is None:
            return None
        worker = self._workers.get(match[1].decode("ascii"))
        return None if worker is None else Route(worker, match[0])

    async def prepare(self, upload: Upload) -> PreparedRevision:
        """Build the upload; what is wrong with it becomes an error of the control API."""
        revision = await self._build(upload)
        try:
            if not await self._composer.handlers(revision):
                raise NoHandlers("No event handlers were registered. This script does nothing.")
        except BaseException:
            await revision.aclose()
            raise
        return PreparedRevision(revision)

    async def _build(self, upload: Upload) -> Revision:
        try:
            revision = await self._composer.build(upload, version="", own_namespaces=True)
        except MemoryLimitExceeded as error:
            raise ValidationFailed(error.message) from error
        except LoadError as error:
            raise _refusal(error) from error
        for line in revision.image.logs:
            self._log(upload.worker, line)
        return revision

    async def go_live(self, version: Version, prepared: Prepared) -> None:
        """Send the worker's new requests to this version."""
        assert isinstance(prepared, PreparedRevision)
        name = version.upload.worker
        revision = replace(prepared.revision, version=version.id)
        worker = self._workers.get(name)
        if isinstance(worker, LiveWorker):
            worker.swap(revision)
        else:
            self._workers[name] = LiveWorker(
                name, self._composer.host, revision, log=lambda line: self._log(name, line)
            )
            self._woken += 1
            if self._resting is not None and self._woken > self._most_awake * _LOOK_AFTER_PART:
                self._rest_later(_REST_PAUSE_SECONDS)
        if any(binding.type == "ai" for binding in version.upload.bindings):
            self._on_ai()

    def enlist(self, summaries: Iterable[WorkerSummary], load: Load) -> None:
        """Know workers that are kept elsewhere, without bringing them in.

        From now on, workers over the number that may be awake are put to rest, those that were
        asked the longest ago first.
        """
        self._load = load
        for summary in summaries:
            self._rest(summary.name, summary.version_id)
            if any(binding.type == "ai" for binding in summary.bindings):
                self._on_ai()
        self._rest_later(_REST_EVERY_SECONDS)

    def mark_broken(self, worker: str) -> None:
        """Answer the worker's requests with an error, and try again ever more seldom."""
        self._rest(worker, "").hold_off()

    async def remove(self, worker: str) -> None:
        """Take the worker off the air; requests in flight have some seconds to finish."""
        removed = self._workers.pop(worker, None)
        if isinstance(removed, LiveWorker):
            self._leave(removed)

    async def drain(self, *, grace_seconds: float) -> None:
        """Let every worker finish what is in flight, and close them all."""
        if self._resting is not None:
            self._resting.cancel()
        workers, self._workers = self._workers, {}
        tasks = list(self._leaving)
        leaving = list(self._leaving.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        live = [worker for worker in workers.values() if isinstance(worker, LiveWorker)]
        await asyncio.gather(
            *(worker.drain(grace_seconds=grace_seconds) for worker in (*live, *leaving))
        )

    def _rest(self, name: str, version: str) -> DormantWorker:
        dormant = self._workers[name] = DormantWorker(name, version, self._wake)
        return dormant

    async def _wake(self, dormant: DormantWorker) -> Target:
        """Bring a worker in, unless a deploy was faster."""
        name = dormant.name
        if self._load is None:
            raise SystemFault(f"The worker {name} is not kept where it could be loaded from.")
        version = await self._load(name)
        if version is not None:
            # Not asked for its handlers again: the deploy has done that.
            prepared = PreparedRevision(await self._build(version.upload))
            if self._workers.get(name) is dormant:
                await self.go_live(version, prepared)
            else:
                await prepared.aclose()
        worker = self._workers.get(name)
        if worker is None or worker is dormant:
            raise WorkerUnavailable(f"The worker {name} is not there any more.")
        return worker

    def _rest_later(self, seconds: float) -> None:
        if self._resting is not None:
            self._resting.cancel()
        self._woken = 0
        self._resting = asyncio.get_running_loop().call_later(seconds, self._rest_some)

    def _rest_some(self) -> None:
        """Put to rest some of those that are too many, and have nothing to do."""
        awake = [worker for worker in self._workers.values() if isinstance(worker, LiveWorker)]
        count = min(len(awake) - self._most_awake, _RESTED_AT_ONCE)
        idle = [worker for worker in awake if not worker.in_flight] if count > 0 else []
        for worker in heapq.nsmallest(count, idle, key=lambda worker: worker.asked_at):
            worker.successor = self._rest(worker.name, worker.version)
            self._leave(worker)
        self._rest_later(
            _REST_PAUSE_SECONDS
            if count == _RESTED_AT_ONCE and len(idle) > count
            else _REST_EVERY_SECONDS
        )

    def _leave(self, worker: LiveWorker) -> None:
        task = asyncio.create_task(worker.drain(grace_seconds=_REMOVED_GRACE_SECONDS))
        self._leaving[task] = worker
        task.add_done_callback(self._leaving.pop)


def _refusal(error: LoadError) -> ValidationFailed:
    # The stack begins with the error; engines differ in whether it holds the message.
    stack = error.stack if error.text in error.stack else f"{error.message}\n{error.stack}"
    return ValidationFailed(f"Uncaught {stack}".rstrip())
