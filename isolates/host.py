"""The host: one compiler, the images made with it, the isolates that run them."""

import asyncio
import hashlib
import heapq
import logging
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

from belem.isolates.cache import CodeCache
from belem.isolates.calls import OverCpu, call
from belem.isolates.capability import Capability
from belem.isolates.errors import (
    GuestInvalid,
    IsolateBusy,
    IsolateLost,
    MemoryLimitExceeded,
    ending,
)
from belem.isolates.event import LogLine
from belem.isolates.guest import Guest, Program
from belem.isolates.image import (
    Image,
    base_image,
    guest_key,
    program_key,
    whole_memory,
    worker_image,
)
from belem.isolates.isolate import Isolate
from belem.isolates.limits import Limits
from belem.isolates.patch import Patch
from belem.isolates.scheduler import Scheduler
from belem.isolates.snapshot import split_guest
from belem.isolates.wasm import (
    Engine,
    EngineConfig,
    Instance,
    Module,
    Ticker,
    Trapped,
    WasmError,
)

__all__ = ["Host"]

_log: Final = logging.getLogger("belem.isolates")
_SEED_BYTES: Final = 32
_MANY_SPAWNS: Final = 16  # after so many of one image, it is worth a memory of its own
_EVICTED_AT_ONCE: Final = 16


class Host:
    """Builds images and spawns isolates.

    `cache_dir` keeps compiled code between runs; it must belong to this user alone. Give each host
    process that runs distrusting tenants' workers its own. A host's isolates belong to the event
    loop that spawned them.
    """

    def __init__(self, cache_dir: Path | None = None, *, max_isolates: int = 1_000) -> None:
        self._cache = None if cache_dir is None else CodeCache(cache_dir)
        self._engine = Engine(EngineConfig())
        self._ticker = Ticker(self._engine)
        self._scheduler = Scheduler(self._ticker)
        # Two threads, so that workers that come back do not wait for others' top levels.
        self._builders = ThreadPoolExecutor(1, thread_name_prefix="belem-build")
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="belem-read")
        self._basing = threading.Lock()
        self._base_memories: dict[str, bytes] = {}
        self._bases: dict[str, Image] = {}
        self._known_guests: dict[int, tuple[Guest, Image]] = {}  # by identity; few, and kept alive
        self._images: WeakValueDictionary[str, Image] = WeakValueDictionary()
        self._starts: WeakKeyDictionary[Image, _Start] = WeakKeyDictionary()
        self._isolates: set[Isolate] = set()
        self._spawned = 0
        self._built = 0
        self._ended_by_cause: Counter[str] = Counter()
        self._max_isolates = max_isolates
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

    def counts(self) -> Mapping[str, int | Mapping[str, int]]:
        """Return what there is and was, for those who watch the host."""
        return {
            "isolates": len(self._isolates),
            "isolate_memory_bytes": sum(isolate.memory_bytes for isolate in self._isolates),
            "isolates_spawned": self._spawned,
            "isolates_ended": dict(self._ended_by_cause),
            "images_built": self._built,
        }

    async def build(self, guest: Guest, program: Program, limits: Limits | None = None) -> Image:
        """Evaluate a worker's top level and return its image; the work is done off the loop.

        Raises `LoadError` if the top level throws, does not parse or exceeds a start-up limit. The
        same program is built once: its image comes from memory or from the cache the next time.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        limits = limits or Limits()
        image = await loop.run_in_executor(self._readers, self._find, guest, program)
        if image is None:
            image = await loop.run_in_executor(self._builders, self._build, guest, program, limits)
        if image.memory_bytes > limits.memory_bytes:
            raise MemoryLimitExceeded(limits.memory_bytes)
        return image

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
            instance = self._instance(image, limits, loop)
        except WasmError as error:
            raise IsolateBusy(f"No isolate can be started: {error}") from error
        isolate = Isolate(
            image, instance, capabilities, limits, log,
            self._scheduler, self._ticker, self._ended, loop,
        )  # fmt: skip
        self._isolates.add(isolate)
        self._spawned += 1
        return isolate

    async def aclose(self) -> None:
        """End every isolate, then free the engine. Safe to call twice."""
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
        self._readers.shutdown(wait=True)
        self._builders.shutdown(wait=True)
        self._scheduler.close()
        self._ticker.close()
        self._bases.clear()
        self._base_memories.clear()
        self._starts.clear()
        self._known_guests.clear()
        self._engine.close()

    def _evict(self) -> bool:
        """End the isolate that has been idle the longest; say whether there was one."""
        if self._end_one():
            return True
        # By the dozen: a full host of a thousand isolates makes room all the time.
        idle = [(one.idle_since, id(one), one) for one in self._isolates if not one.in_flight]
        self._idle_longest = heapq.nsmallest(_EVICTED_AT_ONCE, idle)
        return self._end_one()

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

    def _instance(self, image: Image, limits: Limits, loop: asyncio.AbstractEventLoop) -> Instance:
        start = self._start(image, loop)
        instance = Instance(
            self._engine, image.code, start.memory, memory_limit_bytes=limits.memory_bytes
        )
        try:
            if start.patch:
                instance.grow_to(image.memory_bytes)
                for address, content in start.patch:
                    instance.write(address, content)
            self._seed(instance, image, loop)
        except BaseException:
            instance.close()
            raise
        return instance

    def _start(self, image: Image, loop: asyncio.AbstractEventLoop) -> "_Start":
        """Return what to start from; have it made cheaper for an image that is used much."""
        start = self._starts.get(image)
        if start is None:
            start = self._starts[image] = _Start(image.memory, image.patch)
        start.spawned += 1
        if start.spawned == _MANY_SPAWNS and start.patch:
            making = loop.run_in_executor(self._builders, self._whole_memory, image)
            making.add_done_callback(partial(_take, start))
        return start

    def _seed(self, instance: Instance, image: Image, loop: asyncio.AbstractEventLoop) -> None:
        """Give a restored guest randomness of its own, unlike its image's other copies."""
        self._ticker.touch(loop)
        instance.write(image.inbox_address, os.urandom(_SEED_BYTES))
        try:
            call(instance, instance.seed, _SEED_BYTES)
        except (Trapped, OverCpu) as error:
            raise IsolateLost("seed", str(error)) from error

    # In the builders' thread

    def _build(self, guest: Guest, program: Program, limits: Limits) -> Image:
        base = self._base(guest)
        key = program_key(base.key, program)
        image = self._images.get(key)
        if image is None:
            memory = self._base_memory(base)
            with self._ticker.held():
                image = worker_image(self._engine, base, program, limits, key, base_memory=memory)
            self._built += 1
            image = self._images[key] = self._kept(image, base)
        return image

    def _kept(self, image: Image, base: Image) -> Image:
        """Write an image to the cache, and return the one to use."""
        if self._cache is None:
            return image
        if image.patch:
            self._cache.save_patch(image.key, image.patch, image.facts())
            return image
        self._cache.save(image.key, image.memory, image.facts())
        # What was compiled here is in this process's memory; what is in a file is not.
        return self._cached_image(image.key, base) or image

    def _whole_memory(self, image: Image) -> Module:
        base = self._bases[image.base]
        return whole_memory(self._engine, image, base_memory=self._base_memory(base))

    def _base_memory(self, base: Image) -> bytes:
        memory = self._base_memories.get(base.key)
        if memory is None:
            instance = Instance(
                self._engine, base.code, base.memory, memory_limit_bytes=base.memory_bytes
            )
            memory = self._base_memories[base.key] = instance.read(0, base.memory_bytes)
            instance.close()
        return memory

    # In the readers' thread

    def _find(self, guest: Guest, program: Program) -> Image | None:
        """Return an image that is in memory or in the cache."""
        base = self._base(guest)
        key = program_key(base.key, program)
        image = self._images.get(key) or self._cached_image(key, base)
        if image is not None:
            self._images[key] = image
        return image

    # In either

    def _base(self, guest: Guest) -> Image:
        with self._basing:
            known = self._known_guests.get(id(guest))
            if known is not None:
                return known[1]
            base = self._content_base(guest)
            self._known_guests[id(guest)] = (guest, base)
            return base

    def _content_base(self, guest: Guest) -> Image:
        """Return the image of a guest by what it consists of: hashing that takes milliseconds."""
        try:
            wasm = guest.wasm.read_bytes()
        except FileNotFoundError as error:
            raise GuestInvalid(
                f"The guest {guest.name!r} has no engine at {guest.wasm}."
            ) from error
        key = guest_key(self._engine, guest, wasm)
        base = self._bases.get(key)
        if base is None:
            base = self._bases[key] = self._make_base(guest, wasm, key)
        return base

    def _make_base(self, guest: Guest, wasm: bytes, key: str) -> Image:
        parts = split_guest(wasm)
        code = self._engine_code(parts.engine)
        cached = None if self._cache is None else self._cache.load(self._engine, key)
        base = None if cached is None else Image.from_facts(key, code, cached[0], cached[1])
        if base is None:
            start = self._engine.compile(parts.image)
            with self._ticker.held():
                base = base_image(self._engine, code, start, guest, key)
            if self._cache is not None:
                self._cache.save(key, base.memory, base.facts())
        return base

    def _engine_code(self, engine_wasm: bytes) -> Module:
        """Return the guest's compiled code: the one thing that takes a second to make."""
        digest = hashlib.sha256(self._engine.identity.encode() + engine_wasm).hexdigest()
        cached = None if self._cache is None else self._cache.load(self._engine, digest)
        if cached is not None:
            return cached[0]
        code = self._engine.compile(engine_wasm)
        if self._cache is not None:
            self._cache.save(digest, code, {})
        return code

    def _cached_image(self, key: str, base: Image) -> Image | None:
        if self._cache is None:
            return None
        patched = self._cache.load_patch(key)
        if patched is not None:
            return Image.from_facts(key, base.code, base.memory, patched[1], patched[0], base.key)
        cached = self._cache.load(self._engine, key)
        return None if cached is None else Image.from_facts(key, base.code, cached[0], cached[1])


@dataclass(slots=True)
class _Start:
    """What the isolates of an image start from: the image as it is, or a memory of its own."""

    memory: Module
    patch: Patch
    spawned: int = 0


def _take(start: _Start, making: asyncio.Future[Module]) -> None:
    if making.cancelled():
        return
    if (error := making.exception()) is not None:  # the patch does as well, and costs more
        _log.error("image_memory_failed", exc_info=error)
        return
    start.memory, start.patch = making.result(), ()
