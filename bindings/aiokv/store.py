"""What a key-value store is, whatever keeps the bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from belem.bindings.aiokv.limits import MAX_PAGE_KEYS, MAX_VALUE_BYTES

__all__ = ["Entry", "Key", "Page", "Store"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept under a key. `expiration` is in seconds since the epoch."""

    value: bytes
    metadata: str | None = None
    expiration: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A key as a listing shows it: everything but the value."""

    name: str
    metadata: str | None = None
    expiration: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing; there is more while `cursor` is not None, even without keys."""

    keys: tuple[Key, ...]
    cursor: str | None


class Store(Protocol):
    """A store of many namespaces, each an ordered map from keys to entries.

    What every implementation promises, and the conformance suite checks:

    - Keys are ordered by their UTF-8 bytes.
    - A write is durable to the implementation's degree, and seen by every later read, once its call
      returns.
    - A call that is cancelled took effect wholly or not at all; so did each key of `put` and all of
      `delete_many`.
    - An entry is gone in the second its expiration names, swept or not.
    - The last write to a key wins; a put replaces value, metadata and expiration together.
    """

    async def get(self, namespace: str, key: str) -> Entry | None:
        """Return the entry, or None when there is none or it has expired."""
        ...

    async def get_many(
        self, namespace: str, keys: Sequence[str], *, limit_bytes: int = MAX_VALUE_BYTES
    ) -> dict[str, Entry]:
        """Return the entries that exist, seen at one moment.

        Raise `TooLarge` when the values together are over `limit_bytes`.
        """
        ...

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
        ...

    async def delete(self, namespace: str, key: str) -> None:
        """Forget the key; fine when it does not exist."""
        ...

    async def delete_many(self, namespace: str, keys: Sequence[str]) -> None:
        """Forget the keys, all at one moment."""
        ...

    async def list(
        self,
        namespace: str,
        *,
        prefix: str = "",
        limit: int = MAX_PAGE_KEYS,
        cursor: str | None = None,
    ) -> Page:
        """Return keys that begin with the prefix, from where the cursor's page ended."""
        ...

    async def aclose(self) -> None:
        """Finish the writes that were accepted and let go of everything; safe to call twice."""
        ...
