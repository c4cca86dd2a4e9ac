"""The embedded version store: one SQLite file for what is known, blobs for the modules' bytes."""

import asyncio
import contextlib
import json
import sqlite3
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar

from belem.runtime.control.blobs import Blobs
from belem.runtime.control.errors import StoreFault
from belem.runtime.control.versions import Binding, Upload, Version, WorkerSummary

__all__ = ["SQLiteVersionStore"]

Result = TypeVar("Result")

_KEPT_VERSIONS: Final = 100
_MOST_LOOKED_FOR: Final = 20  # blobs, one by one; looking for all at once takes as long
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS workers (
    name TEXT PRIMARY KEY,
    active_version TEXT NOT NULL,
    next_number INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS versions (
    id TEXT PRIMARY KEY,
    worker TEXT NOT NULL REFERENCES workers (name) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    number INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    manifest TEXT NOT NULL,
    UNIQUE (worker, number)
) STRICT;
"""


class SQLiteVersionStore:
    """Implement `VersionStore` in a directory. Every call runs on the store's one thread."""

    def __init__(
        self, directory: Path, *, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._now_ms = now_ms
        self._blobs = Blobs(directory / "blobs")
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="belem-version-store")
        self._db: sqlite3.Connection = self._executor.submit(
            _open, directory / "versions.sqlite"
        ).result()
        self._collected = False
        self._closed = False

    async def deploy(self, upload: Upload) -> Version:
        """Keep the upload as the worker's next version and make it the active one."""
        return await self._run(lambda: self._deploy(upload))

    async def active(self, worker: str) -> Version | None:
        """Return the worker's active version with its modules, or None."""
        return await self._run(lambda: self._active(worker))

    async def list(self) -> Sequence[WorkerSummary]:
        """Return every worker, by name."""
        return await self._run(self._list)

    async def delete(self, worker: str) -> bool:
        """Forget the worker and all its versions."""
        return await self._run(lambda: self._delete(worker))

    async def aclose(self) -> None:
        """Close the file. Safe to call twice."""
        if not self._closed:
            await self._run(self._db.close)
            self._closed = True
            self._executor.shutdown()

    async def _run(self, work: Callable[[], Result]) -> Result:
        if self._closed:
            raise StoreFault("The version store is closed.")
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except (sqlite3.Error, OSError) as error:
            raise StoreFault(f"The version store failed: {error}") from error

    def _deploy(self, upload: Upload) -> Version:
        # Blobs first: a crash before the transaction leaves blobs that nothing names, and no
        # version.
        manifest = json.dumps(_manifest(upload, self._blobs))
        now_ms = self._now_ms()
        version_id = str(uuid.uuid4())
        with _transaction(self._db):
            row = self._db.execute(
                "INSERT INTO workers VALUES (?1, ?2, 2, ?3, ?3) ON CONFLICT (name) DO UPDATE SET "
                "active_version = ?2, next_number = next_number + 1, modified_ms = ?3 "
                "RETURNING next_number - 1",
                (upload.worker, version_id, now_ms),
            ).fetchone()
            number: int = row[0]
            self._db.execute(
                "INSERT INTO versions VALUES (?, ?, ?, ?, ?)",
                (version_id, upload.worker, number, now_ms, manifest),
            )
            pruned = self._db.execute(
                "DELETE FROM versions WHERE worker = ? AND number <= ? RETURNING manifest",
                (upload.worker, number - _KEPT_VERSIONS),
            ).fetchall()
        if pruned:
            self._forget(upload.worker, pruned)
        return Version(version_id, number, now_ms, upload)

    def _active(self, worker: str) -> Version | None:
        row = self._db.execute(
            "SELECT v.id, v.number, v.created_ms, v.manifest FROM workers w "
            "JOIN versions v ON v.id = w.active_version WHERE w.name = ?",
            (worker,),
        ).fetchone()
        if row is None:
            return None
        upload = _upload(worker, json.loads(row[3]), self._blobs)
        return Version(id=row[0], number=row[1], created_ms=row[2], upload=upload)

    def _list(self) -> Sequence[WorkerSummary]:
        rows = self._db.execute(
            "SELECT w.name, v.id, v.number, w.created_ms, w.modified_ms, v.manifest FROM workers w "
            "JOIN versions v ON v.id = w.active_version ORDER BY w.name"
        ).fetchall()
        return [
            WorkerSummary(
                name, id_, number, created_ms, modified_ms, _bindings(json.loads(manifest))
            )
            for name, id_, number, created_ms, modified_ms, manifest in rows
        ]

    def _delete(self, worker: str) -> bool:
        with _transaction(self._db):
            manifests = self._db.execute(
                "SELECT manifest FROM versions WHERE worker = ?", (worker,)
            ).fetchall()
            found = self._db.execute("DELETE FROM workers WHERE name = ?", (worker,)).rowcount > 0
        if found:
            self._forget(worker, manifests)
        return found

    def _forget(self, worker: str, manifests: Sequence[tuple[str]]) -> None:
        """Delete the blobs that nothing but these versions, which are gone, has named.

        All that is left is looked through once only, for what crashes left: with many workers it
        takes the better part of a second, and workers on their way in wait for this thread.
        """
        gone = {digest for row in manifests for digest in json.loads(row[0])["modules"].values()}
        own = "SELECT 1 FROM versions WHERE worker = ? AND instr(manifest, ?) LIMIT 1"
        # A redeploy seldom changes all modules, so the worker's other versions are asked first.
        gone -= {digest for digest in gone if self._db.execute(own, (worker, digest)).fetchone()}
        if not self._collected or len(gone) > _MOST_LOOKED_FOR:
            self._collect()
            self._collected = True
            return
        for digest in gone:
            any_worker = "SELECT 1 FROM versions WHERE instr(manifest, ?) LIMIT 1"
            if self._db.execute(any_worker, (digest,)).fetchone() is None:
                self._blobs.delete(digest)

    def _collect(self) -> None:
        used: set[str] = set()
        for (manifest,) in self._db.execute("SELECT manifest FROM versions"):
            used.update(json.loads(manifest)["modules"].values())
        self._blobs.keep_only(used)


def _open(path: Path) -> sqlite3.Connection:
    # Autocommit: transactions are opened and closed by `_transaction` alone.
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    db.executescript(_SCHEMA)
    return db


@contextlib.contextmanager
def _transaction(db: sqlite3.Connection) -> Generator[None, None, None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _manifest(upload: Upload, blobs: Blobs) -> dict[str, object]:
    return {
        "main_module": upload.main_module,
        "modules": {name: blobs.put(source.encode()) for name, source in upload.modules.items()},
        "bindings": [[b.name, b.type, b.namespace_id] for b in upload.bindings],
        "vars": upload.vars,
        "compatibility_date": upload.compatibility_date,
        "compatibility_flags": upload.compatibility_flags,
        "cpu_ms": upload.cpu_ms,
        "subrequests": upload.subrequests,
        "isolation": upload.isolation,
    }


# Any: the manifest is JSON that `_manifest` wrote; nobody else writes the file.
def _upload(worker: str, manifest: dict[str, Any], blobs: Blobs) -> Upload:
    return Upload(
        worker=worker,
        main_module=manifest["main_module"],
        modules={name: blobs.get(digest).decode() for name, digest in manifest["modules"].items()},
        bindings=_bindings(manifest),
        vars=manifest["vars"],
        compatibility_date=manifest["compatibility_date"],
        compatibility_flags=tuple(manifest["compatibility_flags"]),
        cpu_ms=manifest["cpu_ms"],
        # Not there in what earlier releases kept.
        subrequests=manifest.get("subrequests"),
        isolation=manifest.get("isolation", "shared"),
    )


def _bindings(manifest: dict[str, Any]) -> tuple[Binding, ...]:
    return tuple(Binding(*fields) for fields in manifest["bindings"])
