"""The images of a host: found in memory or in the cache, or built; never on the loop."""

import asyncio
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

from belem.isolates.cache import CodeCache
from belem.isolates.errors import GuestInvalid, MemoryLimitExceeded
from belem.isolates.guest import Guest, Program
from belem.isolates.image import (
    Image,
    base_image,
    guest_key,
    program_key,
    whole_memory,
    worker_image,
)
from belem.isolates.limits import Limits
from belem.isolates.snapshot import split_guest
from belem.isolates.wasm import Engine, Instance, Module, Ticker

__all__ = ["Images"]


class Images:
    """Hold images for as long as somebody else does, and bring the others back.

    Two threads: one runs top levels, which may take a second; one reads the cache, so that workers
    that come back do not wait for those.
    """

    def __init__(self, engine: Engine, ticker: Ticker, cache: CodeCache | None) -> None:
        self.built = 0
        self._engine = engine
        self._ticker = ticker
        self._cache = cache
        self._builders = ThreadPoolExecutor(1, thread_name_prefix="belem-build")
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="belem-read")
        self._basing = threading.Lock()
        self._bases: dict[str, Image] = {}
        self._memories: dict[str, bytes] = {}  # of the bases
        self._known_guests: dict[int, tuple[Guest, Image]] = {}  # by identity; few, and kept alive
        self._held: WeakValueDictionary[str, Image] = WeakValueDictionary()

    async def get(self, guest: Guest, program: Program, limits: Limits) -> Image:
        """Return the program's image; raise `LoadError` if its top level fails."""
        loop = asyncio.get_running_loop()
        image = await loop.run_in_executor(self._readers, self._find, guest, program)
        if image is None:
            image = await loop.run_in_executor(self._builders, self._build, guest, program, limits)
        if image.memory_bytes > limits.memory_bytes:
            raise MemoryLimitExceeded(limits.memory_bytes)
        return image

    def whole_memory(
        self, image: Image, loop: asyncio.AbstractEventLoop
    ) -> "asyncio.Future[Module]":
        """Make a memory from which the image starts without its patch."""
        return loop.run_in_executor(self._builders, self._make_whole, image)

    def close(self) -> None:
        """Wait for what is being made, and let go of everything."""
        self._readers.shutdown(wait=True)
        self._builders.shutdown(wait=True)
        self._bases.clear()
        self._memories.clear()
        self._known_guests.clear()

    # In the builders' thread

    def _build(self, guest: Guest, program: Program, limits: Limits) -> Image:
        base = self._base(guest)
        key = program_key(base.key, program)
        image = self._held.get(key)
        if image is None:
            memory = self._base_memory(base)
            with self._ticker.held():
                image = worker_image(self._engine, base, program, limits, key, base_memory=memory)
            self.built += 1
            image = self._held[key] = self._kept(image, base)
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

    def _make_whole(self, image: Image) -> Module:
        base = self._bases[image.base]
        return whole_memory(self._engine, image, base_memory=self._base_memory(base))

    def _base_memory(self, base: Image) -> bytes:
        memory = self._memories.get(base.key)
        if memory is None:
            instance = Instance(
                self._engine, base.code, base.memory, memory_limit_bytes=base.memory_bytes
            )
            memory = self._memories[base.key] = instance.read(0, base.memory_bytes)
            instance.close()
        return memory

    # In the readers' thread

    def _find(self, guest: Guest, program: Program) -> Image | None:
        """Return an image that is in memory or in the cache."""
        base = self._base(guest)
        key = program_key(base.key, program)
        image = self._held.get(key) or self._cached_image(key, base)
        if image is not None:
            self._held[key] = image
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
