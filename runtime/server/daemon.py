"""The inference daemon as a child process: started on demand, restarted, ended with its host."""

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Literal, Self

from belem.sdk import SystemFault

__all__ = ["DaemonState", "InferenceFailed", "InferenceProcess"]

_READY: Final = "ready"
_READY_TIMEOUT_SECONDS: Final = 180.0  # a cold import of TensorFlow on a slow disk, and the weights
_STOP_TIMEOUT_SECONDS: Final = 5.0
_FIRST_BACKOFF_SECONDS: Final = 0.25
_LAST_BACKOFF_SECONDS: Final = 30.0
_STABLE_SECONDS: Final = 60.0  # after this long a death is news, not a crash loop
_KEPT_LINES: Final = 20
_LINE_LIMIT_BYTES: Final = 64 * 1024


class InferenceFailed(SystemFault):
    """The daemon ended, or did not become ready in time."""

    code: ClassVar[str] = "server/inference-failed"


@dataclass(frozen=True, slots=True)
class DaemonState:
    """A change in the daemon's life. It is published after it is true."""

    kind: Literal["starting", "ready", "ended", "stopped"]
    pid: int | None = None
    detail: str = ""


class InferenceProcess:
    """Keep one daemon running on a Unix socket that only this user reaches.

    `start` returns at once and may be called again; clients find the daemon at `address` when it
    is ready, before and after restarts. A daemon that ends is started again, each time after a
    longer wait, until it has been up for a minute.
    """

    def __init__(
        self,
        *,
        on_line: Callable[[str], None],
        on_state: Callable[[DaemonState], None],
        arguments: Sequence[str] = (),
        command: Sequence[str] = (sys.executable, "-m", "belem.runtime.inference"),
    ) -> None:
        self._on_line = on_line
        self._on_state = on_state
        self._command = [*command]
        self._arguments = [*arguments]
        # A directory of its own: mkdtemp gives mode 0700, and the path stays under a socket's 107
        # bytes.
        self._directory = Path(tempfile.mkdtemp(prefix="belem-inference-"))
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._supervision: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._failed: InferenceFailed | None = None
        self._attempted = asyncio.Event()

    @property
    def address(self) -> str:
        """The gRPC target."""
        return f"unix:{self._directory / 'inference.sock'}"

    @property
    def ready(self) -> bool:
        """Whether the daemon answers now."""
        return self._ready.is_set()

    def start(self) -> None:
        """Start the daemon, unless it was started before."""
        if self._supervision is None:
            self._supervision = asyncio.create_task(self._supervise())

    async def wait_ready(self) -> None:
        """Return when the daemon is ready for the first time; raise if its first start failed."""
        self.start()
        await self._attempted.wait()
        if self._failed is not None and not self.ready:
            raise self._failed

    async def aclose(self) -> None:
        """End the daemon and its supervision. Safe to call twice."""
        supervision, self._supervision = self._supervision, None
        if supervision is not None:
            supervision.cancel()
            await asyncio.gather(supervision, return_exceptions=True)
            self._on_state(DaemonState("stopped"))
        shutil.rmtree(self._directory, ignore_errors=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _supervise(self) -> None:
        backoff_seconds = _FIRST_BACKOFF_SECONDS
        while True:
            started_s = time.monotonic()
            detail = await self._run_once()
            self._failed = InferenceFailed(f"The inference daemon {detail}.")
            self._attempted.set()
            if time.monotonic() - started_s > _STABLE_SECONDS:
                backoff_seconds = _FIRST_BACKOFF_SECONDS
            self._on_state(
                DaemonState("ended", detail=f"{detail}; next start in {backoff_seconds:g} s")
            )
            await asyncio.sleep(backoff_seconds)
            backoff_seconds = min(backoff_seconds * 2, _LAST_BACKOFF_SECONDS)

    async def _run_once(self) -> str:
        """Run one process to its end and say how it ended."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._directory / "inference.sock")
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *("--listen", self.address, "--parent-pid", str(os.getpid())),
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                # Ctrl-C in a terminal is for us: the daemon answers until requests have been
                # drained.
                start_new_session=True,
                limit=_LINE_LIMIT_BYTES,
            )
        except OSError as error:
            return f"cannot be started: {error}"
        self._on_state(DaemonState("starting", process.pid))
        try:
            return await self._watch(process)
        finally:
            self._ready.clear()
            await _stop(process)

    async def _watch(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None
        reading = asyncio.create_task(self._read_lines(process, process.stdout))
        try:
            try:
                async with asyncio.timeout(_READY_TIMEOUT_SECONDS):
                    ready = asyncio.create_task(self._ready.wait())
                    await asyncio.wait({ready, reading}, return_when=asyncio.FIRST_COMPLETED)
                    ready.cancel()
            except TimeoutError:
                return f"was not ready within {_READY_TIMEOUT_SECONDS:g} seconds"
            await reading
            status = await process.wait()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if status < 0:  # nothing that it printed before says why
            return f"was killed by signal {-status}"
        last = f": {self._lines[-1]}" if self._lines else ""
        return f"ended with status {status}{last}"

    async def _read_lines(
        self, process: asyncio.subprocess.Process, output: asyncio.StreamReader
    ) -> None:
        while True:
            try:
                raw = await output.readline()
            except ValueError:  # a line over the limit: its start has been dropped
                continue
            if not raw:
                return
            line = raw.decode("utf-8", "replace").rstrip()
            self._lines.append(line)
            if not self._ready.is_set() and _READY in line.split():
                self._ready.set()
                self._attempted.set()
                self._on_state(DaemonState("ready", process.pid, line))
            else:
                self._on_line(line)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_STOP_TIMEOUT_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
