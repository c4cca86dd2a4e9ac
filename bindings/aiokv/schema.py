"""The SQLite file: how it is laid out, opened and recognised.

One table holds every namespace. Its rows live in rowid order and are found through an index, so
that large values sit in overflow pages which neither look-ups nor listings touch: that is also why
`value` is the last column. Keys are BLOBs, which SQLite compares byte by byte.

The header's application_id says that the file is ours, its user_version which layout it has. A file
that has another application_id, or tables but no application_id, belongs to somebody else and is
left as it was found.
"""

import os
import sqlite3
import time
from pathlib import Path
from typing import Final

from belem.bindings.aiokv.errors import StoreUnreadable

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "connect", "prepare"]

APPLICATION_ID: Final = int.from_bytes(b"aikv")
SCHEMA_VERSION: Final = 1

_CREATE: Final = (
    """
    CREATE TABLE entries (
        namespace TEXT NOT NULL,
        key BLOB NOT NULL,
        expiration INTEGER,
        metadata TEXT,
        value BLOB NOT NULL
    ) STRICT
    """,
    "CREATE UNIQUE INDEX entries_by_key ON entries (namespace, key)",
    "CREATE INDEX entries_by_expiration ON entries (expiration) WHERE expiration IS NOT NULL",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

_MAGIC: Final = b"SQLite format 3\0"
_WAL_RETRY_SECONDS: Final = 0.02
# The log is cut back to this after a checkpoint, so that one burst of large values does not stay on
# the disk.
_WAL_KEPT_BYTES: Final = 64 * 1024 * 1024


def connect(path: Path, *, busy_timeout_ms: int) -> sqlite3.Connection:
    """Open a connection as every thread of a store wants it."""
    connection = sqlite3.connect(
        path, timeout=busy_timeout_ms / 1000, isolation_level=None, cached_statements=32
    )
    try:
        _set_up(connection)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def prepare(path: Path, *, busy_timeout_ms: int) -> None:
    """Make the file when it is new; raise `StoreUnreadable` when it is not one of ours."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Values may be secrets: only the owner reads a new file. SQLite gives the log the same mode.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        magic = os.read(descriptor, len(_MAGIC))
    finally:
        os.close(descriptor)
    if magic not in (b"", _MAGIC):  # SQLite itself would take a very short file for a new one
        raise StoreUnreadable(f"{path} is not a SQLite file; it was left as it is.")
    connection = connect(path, busy_timeout_ms=busy_timeout_ms)
    try:
        if not _is_ours(connection, path):
            _enter_wal_mode(connection, deadline=time.monotonic() + busy_timeout_ms / 1000)
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have made it while this one waited for the lock.
            if not _is_ours(connection, path):
                for statement in _CREATE:
                    connection.execute(statement)
            connection.execute("COMMIT")
        _probe(connection, path)
    finally:
        connection.close()


def _set_up(connection: sqlite3.Connection) -> None:
    # FULL syncs the log at each commit: in WAL mode, NORMAL may lose acknowledged writes with the
    # power.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
    """Tell a store of this version from an empty file; raise for anything else."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application_id == 0 and version == 0 and objects == 0:
        return False
    if application_id != APPLICATION_ID:
        raise StoreUnreadable(f"{path} is the database of another program; it was left as it is.")
    if version != SCHEMA_VERSION:
        raise StoreUnreadable(
            f"{path} has layout version {version}; this build reads version {SCHEMA_VERSION}."
        )
    return True


def _enter_wal_mode(connection: sqlite3.Connection, *, deadline: float) -> None:
    # The switch does not honour the busy timeout, and two processes may open a new file at once.
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_WAL_RETRY_SECONDS)
        else:
            return


def _probe(connection: sqlite3.Connection, path: Path) -> None:
    """Read from the table and its index: a file cut short shows here, not in a request."""
    connection.execute("SELECT max(rowid) FROM entries").fetchone()
    connection.execute("SELECT max(key) FROM entries WHERE namespace = ''").fetchone()
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        raise StoreUnreadable(f"{path} is in journal mode {mode}; a store is always in wal mode.")
