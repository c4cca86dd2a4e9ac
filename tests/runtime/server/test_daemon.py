"""The supervision of the daemon, with small stand-ins for it that are real processes."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from belem.runtime.server.daemon import DaemonState, InferenceFailed, InferenceProcess

READY = "import sys, time; print('belem inference ready on', sys.argv[2], flush=True); "
ECHO = READY + "print('arguments', *sys.argv[3:], flush=True); time.sleep(600)"
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + READY + ("time.sleep(600)")
)


class Watched:
    """A supervised stand-in, and what was reported of it."""

    def __init__(self, program: str, *arguments: str) -> None:
        self.lines: list[str] = []
        self.states: list[DaemonState] = []
        self.process = InferenceProcess(
            on_line=self._line,
            on_state=self._state,
            arguments=arguments,
            command=(sys.executable, "-c", program),
        )
        self._news = asyncio.Event()

    def _line(self, line: str) -> None:
        self.lines.append(line)
        self._news.set()

    def _state(self, state: DaemonState) -> None:
        self.states.append(state)
        self._news.set()

    async def count(self, kind: str, wanted: int) -> DaemonState:
        """Return the state of this kind that is the `wanted`th, waiting for it."""
        async with asyncio.timeout(20):
            while True:
                of_kind = [state for state in self.states if state.kind == kind]
                if len(of_kind) >= wanted:
                    return of_kind[wanted - 1]
                self._news.clear()
                await self._news.wait()

    async def line(self, start: str) -> str:
        """Return the line that starts so, waiting for it."""
        async with asyncio.timeout(20):
            while True:
                for line in self.lines:
                    if line.startswith(start):
                        return line
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def watched(program: str, *arguments: str) -> AsyncGenerator[Watched, None]:
    made = Watched(program, *arguments)
    async with made.process:
        yield made


def alive(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def mode(folder: Path) -> int | None:
    return stat.S_IMODE(folder.stat().st_mode) if folder.exists() else None


async def test_it_is_started_once_with_its_address_and_our_pid() -> None:
    async with watched(ECHO, "--device", "cpu") as daemon:
        daemon.process.start()
        daemon.process.start()
        await daemon.process.wait_ready()

        ready = await daemon.count("ready", 1)
        assert ready.detail == f"belem inference ready on {daemon.process.address}"
        assert await daemon.line("arguments") == (
            f"arguments --parent-pid {os.getpid()} --device cpu"
        )
        assert [state.kind for state in daemon.states] == ["starting", "ready"]


async def test_its_socket_is_for_this_user_alone() -> None:
    async with watched(ECHO) as daemon:
        folder = Path(daemon.process.address.removeprefix("unix:")).parent

        assert mode(folder) == 0o700
        assert len(daemon.process.address) < 100
    assert mode(folder) is None


async def test_one_that_is_killed_is_started_again() -> None:
    async with watched(ECHO) as daemon:
        await daemon.process.wait_ready()
        first = await daemon.count("ready", 1)
        assert first.pid is not None

        os.kill(first.pid, signal.SIGKILL)

        ended = await daemon.count("ended", 1)
        assert ended.detail.startswith("was killed by signal 9; next start in ")
        second = await daemon.count("ready", 2)
        assert second.pid != first.pid
        assert daemon.process.ready


async def test_one_that_cannot_start_says_why() -> None:
    async with watched("print('no TensorFlow here'); raise SystemExit(3)") as daemon:
        with pytest.raises(InferenceFailed, match="ended with status 3: no TensorFlow here"):
            await daemon.process.wait_ready()


async def test_a_command_that_is_not_there_says_so() -> None:
    daemon = InferenceProcess(
        on_line=lambda line: None, on_state=lambda state: None, command=("/nonexistent/daemon",)
    )
    async with daemon:
        with pytest.raises(InferenceFailed, match="cannot be started"):
            await daemon.wait_ready()


async def test_it_ends_with_us() -> None:
    async with watched(ECHO) as daemon:
        await daemon.process.wait_ready()
        pid = (await daemon.count("ready", 1)).pid
        assert alive(pid)

    assert not alive(pid)
    assert daemon.states[-1].kind == "stopped"


async def test_one_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belem.runtime.server.daemon._STOP_TIMEOUT_SECONDS", 0.1)
    async with watched(STUBBORN) as daemon:
        await daemon.process.wait_ready()
        pid = (await daemon.count("ready", 1)).pid

    assert not alive(pid)


async def test_one_that_never_gets_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belem.runtime.server.daemon._READY_TIMEOUT_SECONDS", 0.2)
    async with watched("import time; time.sleep(600)") as daemon:
        with pytest.raises(InferenceFailed, match=r"was not ready within 0\.2 seconds"):
            await daemon.process.wait_ready()


async def test_a_line_without_end_does_no_harm() -> None:
    program = "import sys; sys.stdout.write('x' * 1_000_000 + '\\n'); " + ECHO
    async with watched(program) as daemon:
        await daemon.process.wait_ready()

        assert daemon.process.ready
