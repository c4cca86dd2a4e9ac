"""Wait for saves: of the files of a bundle, and of those that it misses."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TypeAlias

from watchfiles import awatch

__all__ = ["Watcher"]

# Editors save in several steps (write a temporary file, rename it over the old one); what comes
# within this time is one save.
_SETTLE_MS = 30
_STEP_MS = 10
# A save in the instant between two watches raises no event; a look this often finds it.
_LOOK_AGAIN_MS = 500

_Signature: TypeAlias = tuple[int, int, int] | None


class Watcher:
    """An async iterator over saves: each item is the set of watched files that changed.

    Directories are watched, not files, so that a file replaced by a rename, deleted and written
    again, or not there yet is seen; a change counts only if the file then differs, so editors'
    temporary files raise nothing. `watch()` may be called at any time with the newest files.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._seen: dict[Path, _Signature] = {}
        self._directories: frozenset[Path] = frozenset()
        self._moved = asyncio.Event()
        self._closed = False
        self.watch(files)

    def watch(self, files: Iterable[Path]) -> None:
        """Watch these files from now on; of those already watched, what was seen last stays."""
        paths = {path.absolute() for path in files}
        self._seen = {path: self._seen.get(path, _signature(path)) for path in paths}
        directories = frozenset(path.parent for path in paths if path.parent.is_dir())
        if directories != self._directories:
            self._directories = directories
            self._moved.set()

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._moved.set()

    async def __aiter__(self) -> AsyncIterator[frozenset[Path]]:
        while not self._closed:
            self._moved.clear()
            events = awatch(
                *self._directories,
                watch_filter=None,
                debounce=_SETTLE_MS,
                step=_STEP_MS,
                stop_event=self._moved,
                rust_timeout=_LOOK_AGAIN_MS,
                yield_on_timeout=True,
                recursive=False,
            )
            async for _ in events:
                if changed := self._changed():
                    yield changed

    def _changed(self) -> frozenset[Path]:
        now = {path: _signature(path) for path in self._seen}
        changed = frozenset(path for path, seen in self._seen.items() if now[path] != seen)
        self._seen = now
        return changed


def _signature(path: Path) -> _Signature:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
