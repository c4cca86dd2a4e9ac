"""Compiled modules and patches on disk: a restart or a redeploy makes nothing again.

A cached module is native code that the host maps and runs: whoever can write it owns the host. So
the folder must be ours alone, files are made for us alone, and what does not match its recorded
digest is thrown away.
"""

import hashlib
import json
import os
import stat
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final, cast

from belem.isolates.patch import Patch, read_patch
from belem.isolates.wasm import Engine, Module, WasmError
from belem.sdk.errors import SystemFault
from belem.sdk.ops import Json

__all__ = ["CacheRefused", "CodeCache"]

_LIMIT_BYTES: Final = 8 << 30  # what is pruned takes some 20 ms to make again
_KEPT_PART: Final = 0.9  # of the limit, when it was passed
_LOOK_AFTER_SAVES: Final = 1_000  # other host processes write to the folder too
_TORN_SECONDS: Final = 3600.0  # a file that is not finished by then never will be
_BLOCK_BYTES: Final = 4096  # what a file takes on the disk is a multiple of


class CacheRefused(SystemFault):
    """The cache folder could be written by somebody else."""

    code: ClassVar[str] = "isolate/cache-refused"


class CodeCache:
    """Serialised modules and patches by content key, each with the few facts that go with it.

    Many processes may share a folder: files appear whole, and one that another process pruned is
    made again. Over the limit, the entries that were used the longest ago go first.
    """

    def __init__(self, folder: Path, *, limit_bytes: int = _LIMIT_BYTES) -> None:
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
        self._limit_bytes = limit_bytes
        self._sound: dict[str, tuple[int, int, int]] = {}
        self._room_bytes = 0  # what may be written before the folder is looked at again
        self._saves_left = 0
        self._pruning = threading.Lock()

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
        self._saved(len(code))

    def load_patch(self, key: str) -> tuple[Patch, Mapping[str, Json]] | None:
        """Return a patch and its facts, or None when there is no sound copy."""
        path = self._folder / f"{key}.patch"
        try:
            digest, _, content = path.read_bytes().partition(b"\n")
            if hashlib.sha256(content).hexdigest().encode() != digest:
                return None
            head, _, packed = content.partition(b"\n")
            facts = cast(Json, json.loads(head))
            if not isinstance(facts, Mapping):
                return None
            patch = read_patch(packed)
            os.utime(path)  # the least recently used go first
        except (OSError, ValueError):
            return None
        return patch, facts

    def save_patch(self, key: str, patch: Patch, facts: Mapping[str, Json]) -> None:
        """Keep a patch: one file, with the digest of all else in its first line."""
        content = json.dumps(facts).encode() + b"\n" + patch
        digest = hashlib.sha256(content).hexdigest().encode()
        self._write(self._folder / f"{key}.patch", digest + b"\n" + content)
        self._saved(len(content))

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

    def _saved(self, length: int) -> None:
        """Look at the folder only now and then: it may hold tens of thousands of files."""
        with self._pruning:
            self._room_bytes -= length
            self._saves_left -= 1
            if self._room_bytes < 0 or self._saves_left < 0:
                self._prune()

    def _prune(self) -> None:
        """Forget the least recently used entries; a mapped file outlives its name."""
        entries = self._entries()
        total = sum(size for size, _ in entries.values())
        if total > self._limit_bytes:
            for key, (size, _) in sorted(entries.items(), key=lambda entry: entry[1][1]):
                if total <= self._limit_bytes * _KEPT_PART:
                    break
                total -= size
                for path in (*self._paths(key), self._folder / f"{key}.patch"):
                    path.unlink(missing_ok=True)
                    self._sound.pop(path.name, None)
        self._room_bytes = max(self._limit_bytes - total, self._limit_bytes // 100)
        self._saves_left = _LOOK_AFTER_SAVES

    def _entries(self) -> Mapping[str, tuple[int, float]]:
        """Return each entry's bytes on disk and when it was last used."""
        entries: dict[str, tuple[int, float]] = {}
        torn_before = time.time() - _TORN_SECONDS
        with os.scandir(self._folder) as files:
            for file in files:
                try:
                    status = file.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another host process pruned it
                if file.name.startswith("."):
                    if status.st_mtime < torn_before:
                        Path(file).unlink(missing_ok=True)
                    continue
                key = file.name.partition(".")[0]
                size, used = entries.get(key, (0, 0.0))
                size += -(-status.st_size // _BLOCK_BYTES) * _BLOCK_BYTES
                entries[key] = (size, max(used, status.st_mtime))
        return entries


def _identity(path: Path) -> tuple[int, int, int]:
    """Return what changes with a file: a new one has another inode, a written one another time."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size
