"""A store in this process's memory: for tests and for state that may be lost."""

import heapq
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from belem.bindings.aiokv.cursor import decode_cursor, encode_cursor
from belem.bindings.aiokv.errors import StoreClosed, TooLarge
from belem.bindings.aiokv.limits import (
    MAX_PAGE_KEYS,
    MAX_VALUE_BYTES,
    check_entry,
    check_limit,
    encode_key,
    encode_namespace,
    encode_prefix,
)
from belem.bindings.aiokv.store import Entry, Key, Page

__all__ = ["MemoryStore"]

# Expired entries that one write clears away at most: the cost is spread, no call pays for all of
# it.
_SWEEP_PER_WRITE: Final = 16


@dataclass(slots=True)
class _Namespace:
    # Python orders str by code point, which is the order of their UTF-8 bytes.
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    order: list[str] = field(default_factory=list[str])

    def put(self, key: str, entry: Entry) -> None:
        if key not in self.entries:
            insort(self.order, key)
        self.entries[key] = entry

    def delete(self, key: str) -> None:
        if self.entries.pop(key, None) is not None:
            del self.order[bisect_left(self.order, key)]


class MemoryStore:
    """Keep entries in memory. No call waits, so each takes effect at once."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._namespaces: dict[str, _Namespace] = {}
        # (expiration, namespace, key) of every put that had one; those since overwritten are
        # skipped.
        self._expirations: list[tuple[int, str, str]] = []
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def get(self, namespace: str, key: str) -> Entry | None:
        """Return the entry, or None when there is none or it has expired."""
        encode_key(key)
        return self._visible(self._namespace(namespace), key)

    async def get_many(
        self, namespace: str, keys: Sequence[str], *, limit_bytes: int = MAX_VALUE_BYTES
    ) -> dict[str, Entry]:
        """Return the entries that exist, seen at one moment."""
        space = self._namespace(namespace)
        found: dict[str, Entry] = {}
        total_bytes = 0
        for key in dict.fromkeys(keys):
            encode_key(key)
            if (entry := self._visible(space, key)) is not None:
                total_bytes += len(entry.value)
                if total_bytes > limit_bytes:
                    raise TooLarge(f"Values are over {limit_bytes} bytes together.")
                found[key] = entry
        return found

    async def put(
        self,
        namespace: str,
        key: str,
        value: bytes,
        *,
        metadata: str | None = None,
        expiration: int | None = None,
    ) -> None:
        """Keep the value; an `expiration` that is past leaves the key missing."""
        encode_key(key)
        check_entry(value, metadata)
        self._namespace(namespace).put(key, Entry(value, metadata, expiration))
        if expiration is not None:
            heapq.heappush(self._expirations, (expiration, namespace, key))
        self._sweep()

    async def delete(self, namespace: str, key: str) -> None:
        """Forget the key; fine when it does not exist."""
        await self.delete_many(namespace, [key])

    async def delete_many(self, namespace: str, keys: Sequence[str]) -> None:
        """Forget the keys, all at one moment."""
        space = self._namespace(namespace)
        for key in keys:
            encode_key(key)
        for key in keys:
            space.delete(key)
        self._sweep()

    async def list(
        self,
        namespace: str,
        *,
        prefix: str = "",
        limit: int = MAX_PAGE_KEYS,
        cursor: str | None = None,
    ) -> Page:
        """Return keys that begin with the prefix, from where the cursor's page ended."""
        check_limit(limit)
        encode_prefix(prefix)
        space = self._namespace(namespace)
        # The key right after K is K with a zero character added.
        after = "" if cursor is None else decode_cursor(cursor).decode() + "\0"
        keys: list[Key] = []
        for index in range(bisect_left(space.order, max(prefix, after)), len(space.order)):
            name = space.order[index]
            if not name.startswith(prefix):
                break
            if (entry := self._visible(space, name)) is None:
                continue
            if len(keys) == limit:
                return Page(tuple(keys), encode_cursor(keys[-1].name.encode()))
            keys.append(Key(name, entry.metadata, entry.expiration))
        return Page(tuple(keys), None)

    async def aclose(self) -> None:
        """Forget everything; safe to call twice."""
        self._closed = True
        self._namespaces.clear()
        self._expirations.clear()

    def _namespace(self, namespace: str) -> _Namespace:
        if self._closed:
            raise StoreClosed("The store is closed.")
        space = self._namespaces.get(namespace)
        if space is None:
            encode_namespace(namespace)
            space = self._namespaces[namespace] = _Namespace()
        return space

    def _visible(self, space: _Namespace, key: str) -> Entry | None:
        entry = space.entries.get(key)
        if entry is None or entry.expiration is None or entry.expiration > self._clock():
            return entry
        return None

    def _sweep(self) -> None:
        now = self._clock()
        for _ in range(_SWEEP_PER_WRITE):
            if not self._expirations or self._expirations[0][0] > now:
                break
            expiration, namespace, key = heapq.heappop(self._expirations)
            space = self._namespaces[namespace]
            entry = space.entries.get(key)
            if entry is not None and entry.expiration == expiration:
                space.delete(key)
        self._forget_overwritten()

    def _forget_overwritten(self) -> None:
        # A key put again and again with a far expiration would otherwise grow the heap without end.
        living = sum(len(space.entries) for space in self._namespaces.values())
        if len(self._expirations) > 2 * living + _SWEEP_PER_WRITE:
            self._expirations = [
                (entry.expiration, namespace, key)
                for namespace, space in self._namespaces.items()
                for key, entry in space.entries.items()
                if entry.expiration is not None
            ]
            heapq.heapify(self._expirations)
