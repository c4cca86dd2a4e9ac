"""Compiled modules on disk: a restart or a redeploy compiles nothing again.

A cached module is native code that the host maps and runs: whoever can write it owns the host. So
the folder must be ours alone, files are made for us alone, and what does not match its recorded
digest is thrown away.
"""

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, cast

from belem.isolates.wasm import Engine, Module, WasmError
from belem.sdk.errors import SystemFault
from belem.sdk.ops import Json

__all__ = ["CacheRefused", "CodeCache"]

_KEPT_MODULES: Final = 512  # some 1.5 MB each; what is pruned takes 20 ms to make again


class CacheRefused(SystemFault):
    """The cache folder could be written by somebody else."""

    code: ClassVar[str] = "isolate/cache-refused"


class CodeCache:
    """Serialised modules by content key, each with the few facts that go with it."""

    def __init__(self, folder: Path, *, kept_modules: int = _KEPT_MODULES) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            raise CacheRefused(f"The code cache {folder} is not a folder.")
        if status.st_uid != os.geteuid():
            raise CacheRefused(
                f"The code cache {folder} belongs to user {status.st_uid}, not to us."
            )
        if status.st_mode & 0o077:
            raise CacheRefused(
                f"The code cache {folder} is open to others: "
                f"its mode is {status.st_mode & 0o777:o}, and must be 700."
            )
        self._folder = folder
        self._kept_modules = kept_modules
        self._sound: dict[str, tuple[int, int, int]] = {}

    def load(self, engine: Engine, key: str) -> tuple[Module, Mapping[str, Json]] | None:
        """Return a module and its facts, or None when there is no sound copy."""
        code_path, facts_path = self._paths(key)
        try:
            facts = cast(Json, json.loads(facts_path.read_bytes()))
            if not isinstance(facts, Mapping) or not self._is_sound(code_path, facts.get("sha256")):
                return None
            module = engine.load(code_path)
            os.utime(facts_path)  # the least recently used go first
        except (OSError, ValueError, WasmError):
            return None
        return module, facts

    def save(self, key: str, module: Module, facts: Mapping[str, Json]) -> None:
        """Keep a module. The facts are written last, so that a torn pair is never sound."""
        code = module.serialize()
        code_path, facts_path = self._paths(key)
        recorded = {**facts, "sha256": hashlib.sha256(code).hexdigest()}
        self._write(code_path, code)
        self._write(facts_path, json.dumps(recorded).encode())
        self._sound[code_path.name] = _identity(code_path)
        self._prune()

    def _is_sound(self, code_path: Path, digest: Json) -> bool:
        """Compare a file with its digest: once, since that takes longer than all else here."""
        identity = _identity(code_path)
        if self._sound.get(code_path.name) == identity:
            return True
        with code_path.open("rb") as file:
            sound = hashlib.file_digest(file, "sha256").hexdigest() == digest
        if sound:
            self._sound[code_path.name] = identity
        return sound

    def _paths(self, key: str) -> tuple[Path, Path]:
        return self._folder / f"{key}.cwasm", self._folder / f"{key}.json"

    def _write(self, path: Path, data: bytes) -> None:
        descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")  # mode 0600
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _prune(self) -> None:
        """Forget the least recently used modules; a mapped file outlives its name."""
        ages: list[tuple[float, str]] = []
        for path in self._folder.glob("*.json"):
            try:
                ages.append((path.stat().st_mtime, path.stem))
            except FileNotFoundError:
                continue  # another host process pruned it
        for _, key in sorted(ages, reverse=True)[self._kept_modules :]:
            for path in self._paths(key):
                path.unlink(missing_ok=True)
                self._sound.pop(path.name, None)


def _identity(path: Path) -> tuple[int, int, int]:
    """Return what changes with a file: a new one has another inode, a written one another time."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size
