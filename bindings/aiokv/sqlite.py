"""A store in one SQLite file, which several processes may open at once."""

import asyncio
import functools
import logging
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self

from belem.bindings.aiokv import schema
from belem.bindings.aiokv.cursor import decode_cursor, encode_cursor
from belem.bindings.aiokv.errors import StoreClosed, StoreError, TooLarge
from belem.bindings.aiokv.lane import Lane
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

__all__ = ["SQLiteStore"]

_READERS: Final = 2
_SWEEP_BATCH_ENTRIES: Final = 256

_VISIBLE: Final = "(expiration IS NULL OR expiration > ?)"
_GET: Final = (
    "SELECT value, metadata, expiration FROM entries "
    f"WHERE namespace = ? AND key = ? AND {_VISIBLE}"
)
_PUT: Final = """
    INSERT INTO entries (namespace, key, expiration, metadata, value) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (namespace, key) DO UPDATE SET
        expiration = excluded.expiration, metadata = excluded.metadata, value = excluded.value
"""
_DELETE: Final = "DELETE FROM entries WHERE namespace = ? AND key = ?"
_LIST: Final = (
    "SELECT key, metadata, expiration FROM entries "
    f"WHERE namespace = ? AND key >= ? AND key < ? AND {_VISIBLE} ORDER BY key LIMIT ?"
)
_SWEEP: Final = """
    DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expiration <= ? LIMIT ?)
"""

logger = logging.getLogger(__name__)


class SQLiteStore:
    """Keep entries in a SQLite file; acknowledged writes survive kill -9 and power loss.

    One thread writes, grouping concurrent writes into one transaction; others read, each on a
    connection of its own, and are never blocked by the writer. A store belongs to the event loop
    that opened it.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        busy_timeout_ms: int = 5000,
        sweep_interval_seconds: float = 60,
    ) -> None:
        self._path = path
        self._clock = clock
        self._busy_timeout_ms = busy_timeout_ms
        self._sweep_interval_seconds = sweep_interval_seconds
        connect = functools.partial(schema.connect, path, busy_timeout_ms=busy_timeout_ms)
        self._writer = Lane("aiokv-writer", self._prepare, threads=1, begin="BEGIN IMMEDIATE")
        self._readers = Lane("aiokv-reader", connect, threads=_READERS, begin="BEGIN")
        self._sweeper: asyncio.TimerHandle | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._opened = False
        self._closed = False

    async def open(self) -> None:
        """Open the file, new or not; raise `StoreUnreadable` when it is not a store."""
        if self._opened or self._closed:
            raise StoreClosed(f"{self._path} was opened before; a store opens once.")
        self._opened = True
        try:
            await self._writer.start()
            await self._readers.start()
        except BaseException:
            await self.aclose()
            raise
        self._sweep_later(self._sweep_interval_seconds)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def get(self, namespace: str, key: str) -> Entry | None:
        """Return the entry, or None when there is none or it has expired."""
        encode_namespace(namespace)
        row = (namespace, encode_key(key), self._clock())
        return await self._readers.run(lambda connection: _get(connection, row))

    async def get_many(
        self, namespace: str, keys: Sequence[str], *, limit_bytes: int = MAX_VALUE_BYTES
    ) -> dict[str, Entry]:
        """Return the entries that exist, seen at one moment."""
        encode_namespace(namespace)
        now = self._clock()
        rows = {key: (namespace, encode_key(key), now) for key in keys}

        def job(connection: sqlite3.Connection) -> dict[str, Entry]:
            found: dict[str, Entry] = {}
            total_bytes = 0
            for key, row in rows.items():
                if (entry := _get(connection, row)) is not None:
                    total_bytes += len(entry.value)
                    if total_bytes > limit_bytes:
                        raise TooLarge(f"Values are over {limit_bytes} bytes together.")
                    found[key] = entry
            return found

        return await self._readers.run(job)

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
        encode_namespace(namespace)
        check_entry(value, metadata)
        row = (namespace, encode_key(key), expiration, metadata, value)

        def job(connection: sqlite3.Connection) -> None:
            connection.execute(_PUT, row)

        await self._writer.run(job, size_bytes=len(value))

    async def delete(self, namespace: str, key: str) -> None:
        """Forget the key; fine when it does not exist."""
        await self.delete_many(namespace, [key])

    async def delete_many(self, namespace: str, keys: Sequence[str]) -> None:
        """Forget the keys, all at one moment."""
        encode_namespace(namespace)
        rows = [(namespace, encode_key(key)) for key in keys]

        def job(connection: sqlite3.Connection) -> None:
            connection.executemany(_DELETE, rows)

        await self._writer.run(job)

    async def list(
        self,
        namespace: str,
        *,
        prefix: str = "",
        limit: int = MAX_PAGE_KEYS,
        cursor: str | None = None,
    ) -> Page:
        """Return keys that begin with the prefix, from where the cursor's page ended."""
        encode_namespace(namespace)
        check_limit(limit)
        start, end = _range(encode_prefix(prefix))
        if cursor is not None:
            # The key right after K is K with a zero byte added.
            start = max(start, decode_cursor(cursor) + b"\0")
        # One more than asked for tells whether there is more.
        row = (namespace, start, end, self._clock(), limit + 1)
        found = await self._readers.run(
            lambda connection: connection.execute(_LIST, row).fetchall()
        )
        keys = tuple(Key(name.decode(), metadata, at) for name, metadata, at in found[:limit])
        return Page(keys, encode_cursor(keys[-1].name.encode()) if len(found) > limit else None)

    async def sweep(self) -> int:
        """Remove a bounded batch of expired entries now; return how many there were."""
        row = (self._clock(), _SWEEP_BATCH_ENTRIES)
        return await self._writer.run(lambda connection: connection.execute(_SWEEP, row).rowcount)

    async def aclose(self) -> None:
        """Finish the writes that were accepted and close the file; safe to call twice."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        # The writer goes last and alone: only the last connection to close folds the log back into
        # the file, and of two that close at once neither is the last.
        await self._readers.aclose()
        await self._writer.aclose()
        if self._sweeping is not None:
            await asyncio.wait([self._sweeping])

    def _prepare(self) -> sqlite3.Connection:
        schema.prepare(self._path, busy_timeout_ms=self._busy_timeout_ms)
        return schema.connect(self._path, busy_timeout_ms=self._busy_timeout_ms)

    def _sweep_later(self, seconds: float) -> None:
        if not self._closed:
            self._sweeper = asyncio.get_running_loop().call_later(seconds, self._sweep_now)

    def _sweep_now(self) -> None:
        # The store holds the task and waits for it in aclose; there is no task group to put it in,
        # since a store may be opened by one task and closed by another.
        self._sweeping = asyncio.create_task(self._sweep_and_rearm())

    async def _sweep_and_rearm(self) -> None:
        swept = 0
        try:
            swept = await self.sweep()
        except StoreClosed:
            return
        except StoreError as error:  # the next round may do better; nobody sees the expired
            logger.warning("aiokv_sweep_failed", extra={"code": error.code})
        # A full batch means that more wait: again at once, behind the writes that queued up
        # meanwhile.
        self._sweep_later(0 if swept == _SWEEP_BATCH_ENTRIES else self._sweep_interval_seconds)


def _get(connection: sqlite3.Connection, row: tuple[str, bytes, float]) -> Entry | None:
    found = connection.execute(_GET, row).fetchone()
    return None if found is None else Entry(*found)


def _range(prefix: bytes) -> tuple[bytes, bytes]:
    """Return the first key with the prefix, and the first one past it."""
    # UTF-8 has no byte 0xFF: it is above every key, and adding one to a byte never overflows.
    return prefix, prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b"\xff"
