"""The host: one compiler, the images made with it, the isolates that run them."""

import asyncio
import heapq
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from weakref import WeakKeyDictionary

from belem.isolates.cache import CodeCache
from belem.isolates.capability import Capability
from belem.isolates.errors import (
    IsolateBusy,
    MemoryLimitExceeded,
    ending,
)
from belem.isolates.event import LogLine
from belem.isolates.guest import Guest, Program
from belem.isolates.image import Image
from belem.isolates.images import Images
from belem.isolates.isolate import Isolate
from belem.isolates.limits import Limits
from belem.isolates.patch import NO_PATCH, Patch, runs
from belem.isolates.pressure import MemoryPressure
from belem.isolates.rewind import Rewinder
from belem.isolates.scheduler import Scheduler
from belem.isolates.wasm import (
    Engine,
    EngineConfig,
    Instance,
    Module,
    Ticker,
    WasmError,
)

__all__ = ["Host"]

_log: Final = logging.getLogger("belem.isolates")
_MANY_USES: Final = 16  # after so many of one image, it is worth a memory of its own
_EVICTED_AT_ONCE: Final = 16
_LOOK_EVERY_SECONDS: Final = 1.0  # at how much memory is free


class Host:
    """Builds images and spawns isolates.

    `cache_dir` keeps compiled code between runs; it must belong to this user alone. Give each host
    process that runs distrusting tenants' workers its own. A host's isolates belong to the event
    loop that spawned them.
    """

    def __init__(
        self,
        cache_dir: Path | None = None,
        *,
        max_isolates: int = 1_000,
        pressure: MemoryPressure | None = None,
        look_every_seconds: float = _LOOK_EVERY_SECONDS,
    ) -> None:
        cache = None if cache_dir is None else CodeCache(cache_dir)
        self._engine = Engine(EngineConfig())
        self._ticker = Ticker(self._engine)
        self._scheduler = Scheduler(self._ticker)
        self._images = Images(self._engine, self._ticker, cache)
        self._starts: WeakKeyDictionary[Image, _Start] = WeakKeyDictionary()
        self._isolates: set[Isolate] = set()
        self._spawned = 0
        self._ended_by_cause: Counter[str] = Counter()
        self._max_isolates = max_isolates
        self._pressure = pressure or MemoryPressure()
        self._look_every_seconds = look_every_seconds
        self._looking: asyncio.TimerHandle | None = None
        # Those to be ended next, unless they are asked something: since when, and which.
        self._idle_longest: list[tuple[float, int, Isolate]] = []
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    @property
    def isolates(self) -> int:
        """Return how many isolates are alive."""
        return len(self._isolates)

    @property
    def has_room(self) -> bool:
        """Return whether another isolate can start without ending one."""
        return len(self._isolates) < self._max_isolates

    def counts(self) -> Mapping[str, int | Mapping[str, int]]:
        """Return what there is and was, for those who watch the host."""
        return {
            "isolates": len(self._isolates),
            "isolate_memory_bytes": sum(isolate.memory_bytes for isolate in self._isolates),
            "isolates_spawned": self._spawned,
            "isolates_ended": dict(self._ended_by_cause),
            "images_built": self._images.built,
        }

    async def build(self, guest: Guest, program: Program, limits: Limits | None = None) -> Image:
        """Evaluate a worker's top level and return its image; the work is done off the loop.

        Raises `LoadError` if the top level throws, does not parse or exceeds a start-up limit. The
        same program is built once: its image comes from memory or from the cache the next time.
        """
        self._check_open()
        return await self._images.get(guest, program, limits or Limits())

    def spawn(
        self,
        image: Image,
        capabilities: Mapping[str, Capability],
        limits: Limits,
        log: Callable[[LogLine], None],
    ) -> Isolate:
        """Start an isolate: a tenth of a millisecond, so it is done on the loop.

        A full host makes room by ending one that is idle; with none idle, `IsolateBusy` is raised.
        """
        self._check_open()
        if image.memory_bytes > limits.memory_bytes:
            raise MemoryLimitExceeded(limits.memory_bytes)
        if len(self._isolates) >= self._max_isolates and not self._evict():
            raise IsolateBusy(f"The host runs {len(self._isolates)} isolates, its limit.")
        loop = asyncio.get_running_loop()
        try:
            instance = self._pristine(image, self._start(image, loop), limits.memory_bytes)
        except WasmError as error:
            raise IsolateBusy(f"No isolate can be started: {error}") from error
        isolate = Isolate(
            image, instance, capabilities, limits, log,
            self._scheduler, self._ticker, self._ended, loop,
        )  # fmt: skip
        self._isolates.add(isolate)
        self._spawned += 1
        if self._looking is None:
            self._looking = loop.call_later(self._look_every_seconds, self._look, loop)
        return isolate

    def renew(self, isolate: Isolate) -> bool:
        """Make an idle isolate as fresh as a new one; end it, and say so, if that cannot be done.

        It cannot if its memory has grown, if anything that it began is not over, or if the system
        does not tell what it wrote.
        """
        try:
            renewed = isolate.renew(partial(self._rewind, isolate.image))
        except WasmError:  # no memory for the one that others are compared to
            _log.exception("isolate_not_renewed")
            renewed = False
        if not renewed:
            isolate.end()
        return renewed

    async def aclose(self) -> None:
        """End every isolate, then free the engine. Safe to call twice."""
        if self._looking is not None:
            self._looking.cancel()
        for isolate in list(self._isolates):
            await isolate.aclose()
        if not self._closed:
            await asyncio.get_running_loop().run_in_executor(None, self.close)

    def close(self) -> None:
        """Free the engine, once no isolate is alive. Safe to call twice."""
        if self._closed:
            return
        if self._isolates:
            raise RuntimeError(f"{len(self._isolates)} isolates are alive: use aclose().")
        self._closed = True
        self._images.close()
        self._scheduler.close()
        self._ticker.close()
        for start in self._starts.values():
            if start.rewinder is not None:
                start.rewinder.close()
        self._starts.clear()
        self._engine.close()

    def _evict(self) -> bool:
        """End the isolate that has been idle the longest; say whether there was one."""
        if self._end_one():
            return True
        # By the dozen: a full host of a thousand isolates makes room all the time.
        idle = [(one.idle_since, id(one), one) for one in self._isolates if not one.in_flight]
        self._idle_longest = heapq.nsmallest(_EVICTED_AT_ONCE, idle)
        return self._end_one()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Short of memory, end what is idle: some at a time, those idle the longest first."""
        self._looking = None
        if self._pressure.is_high():
            before = len(self._isolates)
            for _ in range(max(_EVICTED_AT_ONCE, before // 8)):
                if not self._evict():
                    break
            if ended := before - len(self._isolates):
                _log.warning("isolates_ended_for_memory", extra={"isolates": ended})
        if self._isolates:
            self._looking = loop.call_later(self._look_every_seconds, self._look, loop)

    def _end_one(self) -> bool:
        for index, (since, _, isolate) in enumerate(self._idle_longest):
            if isolate.dead is None and not isolate.in_flight and isolate.idle_since == since:
                del self._idle_longest[: index + 1]
                isolate.end()
                return True
        self._idle_longest.clear()
        return False

    def _ended(self, isolate: Isolate) -> None:
        self._isolates.discard(isolate)
        self._ended_by_cause[ending(isolate.dead)] += 1

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("The host is closed.")

    def _pristine(self, image: Image, start: "_Start", memory_limit_bytes: int) -> Instance:
        """Return an instance in which nothing has run."""
        instance = Instance(
            self._engine, image.code, start.memory, memory_limit_bytes=memory_limit_bytes
        )
        try:
            if start.patch:
                instance.grow_to(image.memory_bytes)
                for address, content in runs(start.patch):
                    instance.write(address, content)
        except BaseException:
            instance.close()
            raise
        return instance

    def _rewind(self, image: Image, instance: Instance) -> bool:
        start = self._start(image, asyncio.get_running_loop())
        if start.rewinder is None:
            pristine = self._pristine(image, start, memory_limit_bytes=image.memory_bytes)
            start.rewinder = Rewinder(pristine)
        return start.rewinder.rewind(instance)

    def _start(self, image: Image, loop: asyncio.AbstractEventLoop) -> "_Start":
        """Return what to start from; have it made cheaper for an image that is used much."""
        start = self._starts.get(image)
        if start is None:
            start = self._starts[image] = _Start(image.memory, image.patch)
        start.used += 1
        if start.used == _MANY_USES and start.patch:
            making = self._images.whole_memory(image, loop)
            making.add_done_callback(partial(_take, start))
        return start


@dataclass(slots=True)
class _Start:
    """What the isolates of an image start from: the image as it is, or a memory of its own."""

    memory: Module
    patch: Patch
    used: int = 0
    rewinder: Rewinder | None = None  # made by the first isolate that is renewed


def _take(start: _Start, making: asyncio.Future[Module]) -> None:
    if making.cancelled():
        return
    if (error := making.exception()) is not None:  # the patch does as well, and costs more
        _log.error("image_memory_failed", exc_info=error)
        return
    start.memory, start.patch = making.result(), NO_PATCH
    if start.rewinder is not None:
        start.rewinder.close()
        start.rewinder = None
