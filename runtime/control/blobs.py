"""Content-addressed files: a blob's name is its SHA-256, so it never changes and is stored once."""

import hashlib
import os
import tempfile
from collections.abc import Collection
from pathlib import Path

from belem.runtime.control.errors import StoreFault

__all__ = ["Blobs"]


class Blobs:
    """Blobs under one directory. Blocking: call it from the store's own thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._folders: set[str] = set()  # whose names this process knows to be on the disk

    def put(self, content: bytes) -> str:
        """Store the content durably and return its digest."""
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            return digest  # a damaged one is written anew
        path.parent.mkdir(exist_ok=True)
        # A temporary file and a rename: a crash leaves a whole blob or none.
        descriptor, temporary = tempfile.mkstemp(dir=self._directory, prefix="new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.rename(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)
        if path.parent.name not in self._folders:
            _sync_directory(self._directory)
            self._folders.add(path.parent.name)
        return digest

    def get(self, digest: str) -> bytes:
        """Return the content, checked against its digest."""
        try:
            content = self._path(digest).read_bytes()
        except FileNotFoundError as error:
            raise StoreFault(f"The blob {digest} is missing from {self._directory}.") from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise StoreFault(f"The blob {digest} in {self._directory} is damaged.")
        return content

    def delete(self, digest: str) -> None:
        """Delete a blob, if it is there."""
        self._path(digest).unlink(missing_ok=True)

    def keep_only(self, digests: Collection[str]) -> None:
        """Delete every other blob, and what crashes left half written."""
        for path in self._directory.glob("new-*"):
            path.unlink(missing_ok=True)
        for path in self._directory.glob("??/*"):
            if path.parent.name + path.name not in digests:
                path.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        return self._directory / digest[:2] / digest[2:]


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
