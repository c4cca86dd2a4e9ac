"""Where pulled weights lie on this machine: one folder for each, complete or not there at all.

    <root>/<weights>/<file>          the weights
    <root>/<weights>/source.json     where they came from, with the hash they were checked against
    <root>/.partial/<weights>.*/     a pull in progress, or what a killed one left
    <root>/.locks/<weights>          held by the process that pulls

A folder gets its final name by one rename, after its files have been checked and synced: a reader
never sees half of it. A killed pull leaves only a `.partial` folder, which the next one removes.
"""

import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

from belem.runtime.inference.store.errors import PullError
from belem.runtime.inference.store.schema import Weights
from belem.sdk.folders import user_cache_directory

__all__ = ["ModelStore"]

_SOURCE_FILE: Final = "source.json"
_SOURCE_MAX_BYTES: Final = 64 * 1024
_LOCK_POLL_SECONDS: Final = 0.1
_LOCK_WAIT_SECONDS: Final = 3600.0  # another pull may be bringing gigabytes


class ModelStore:
    """The folder of pulled weights. Reading it never waits; changing it needs the weights' lock."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def default(cls) -> "ModelStore":
        """Return the store in the user's cache folder."""
        return cls(user_cache_directory() / "models")

    def installed(self, weights: Weights) -> Path | None:
        """Return the file of these very weights, or None.

        Looks at its size and at the record of the pull, which checked the hash; hashes nothing.
        """
        path = self.root / weights.name / weights.file.name
        try:
            if path.stat().st_size != weights.bytes:
                return None
        except OSError:
            return None
        return path if self.source(weights).get("sha256") == weights.sha256 else None

    def source(self, weights: Weights) -> dict[str, object]:
        """Return what was recorded when the weights were pulled; empty where there is no record."""
        try:
            with (self.root / weights.name / _SOURCE_FILE).open("rb") as file:
                record: object = json.loads(file.read(_SOURCE_MAX_BYTES))
        except (OSError, ValueError):
            return {}
        return cast("dict[str, object]", record) if isinstance(record, dict) else {}

    @contextmanager
    def lock(self, weights: Weights, *, on_wait: Callable[[], None]) -> Generator[None, None, None]:
        """Hold the right to change these weights; call `on_wait` while another process has it."""
        path = self.root / ".locks" / weights.name
        self._make_folder(path.parent)
        # The kernel drops the lock with the process, however it dies; the file itself stays, since
        # removing it would let two processes hold locks on two files of one name.
        with path.open("ab") as file:
            deadline = time.monotonic() + _LOCK_WAIT_SECONDS
            while not _try_lock(file.fileno()):
                if time.monotonic() > deadline:
                    raise PullError(
                        f"Another process has been pulling {weights.name} for "
                        f"{_LOCK_WAIT_SECONDS:.0f} seconds; end it and try again."
                    )
                on_wait()
                time.sleep(_LOCK_POLL_SECONDS)
            yield

    @contextmanager
    def staging(self, weights: Weights) -> Generator[Path, None, None]:
        """Give an empty folder on the store's disk and remove it at the end. Needs the lock."""
        partial = self.root / ".partial"
        self._make_folder(partial)
        for leftover in partial.glob(f"{weights.name}.*"):
            shutil.rmtree(leftover, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{weights.name}.", dir=partial))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, weights: Weights, folder: Path, record: dict[str, object]) -> Path:
        """Make a staged folder the weights' own, in one rename. Needs the lock."""
        source = folder / _SOURCE_FILE
        source.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        _sync(source)
        _sync(folder)
        home = self.root / weights.name
        if home.exists():  # other weights of this name: an older catalogue's, or damaged
            home.rename(folder.parent / "replaced")
        folder.rename(home)
        _sync(self.root)
        return home / weights.file.name

    def free_bytes(self) -> int:
        """Return the room left on the store's disk."""
        self._make_folder(self.root)
        return shutil.disk_usage(self.root).free

    def _make_folder(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PullError(
                f"Cannot make the folder {path}: {error.strerror}. "
                "Set XDG_CACHE_HOME to a folder that you may write to."
            ) from error


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
