"""Built files, kept by the digest of all that went into them. Builds may run side by side."""

import contextlib
import fcntl
import shutil
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

from belem.isolates.guests.building.errors import BuildFailed

__all__ = ["Outputs"]

_LOCK_TIMEOUT_SECONDS: Final = 900.0
_LOCK_POLL_SECONDS: Final = 0.1


class Outputs:
    """A folder of built files: `<key>/<name>`."""

    def __init__(
        self, folder: Path, *, lock_timeout_seconds: float = _LOCK_TIMEOUT_SECONDS
    ) -> None:
        self._folder = folder
        self._lock_timeout_seconds = lock_timeout_seconds

    def find(self, key: str, name: str) -> Path | None:
        """Return the file built for a key, if it was."""
        path = self._folder / key / name
        return path if path.is_file() else None

    def find_or_build(
        self, key: str, name: str, build: Callable[[Path], Path], *, waiting: Callable[[], None]
    ) -> Path:
        """Return the file for a key; if there is none, `build` it in a scratch folder and keep it.

        Of several processes one builds while the others wait; `waiting` is called once before that.
        """
        if (found := self.find(key, name)) is not None:
            return found
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._locked(key, waiting):
            if (found := self.find(key, name)) is not None:
                return found
            with tempfile.TemporaryDirectory(prefix="build-", dir=self._folder) as scratch:
                built = build(Path(scratch))
                target = self._folder / key / name
                target.parent.mkdir(exist_ok=True)
                built.chmod(0o644)
                built.replace(target)  # same file system: whole or not there
                return target

    @contextlib.contextmanager
    def _locked(self, key: str, waiting: Callable[[], None]) -> Generator[None]:
        deadline = time.monotonic() + self._lock_timeout_seconds
        path = self._folder / f"{key}.lock"
        told = False
        # The lock file stays: removed while another process waits on it, two builds would run.
        with path.open("w") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise BuildFailed(
                            f"Another build has held {path} for {self._lock_timeout_seconds:.0f} "
                            "seconds. End that process, then build again."
                        ) from None
                    if not told:
                        waiting()
                        told = True
                    time.sleep(_LOCK_POLL_SECONDS)
            yield


def install(built: Path, target: Path) -> bool:
    """Put a copy of a built file in its place; return False when it is there already."""
    if target.is_file() and target.read_bytes() == built.read_bytes():
        return False
    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=f".{target.name}-", delete=False
    ) as file:
        temporary = Path(file.name)
    try:
        shutil.copyfile(built, temporary)
        temporary.chmod(0o644)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    return True
