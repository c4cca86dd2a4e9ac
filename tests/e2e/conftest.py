"""Real dev servers, each a process of its own, for the end-to-end tests."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import httpx
import pytest

from tests.support.processes import free_port, running

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "edge-cache"
BELEM = str(Path(sys.executable).parent / "belem")


@dataclass(frozen=True)
class Server:
    """A running server: its address, its process and everything it printed."""

    process: Popen[bytes]
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        return (self.folder / f".output-{self.port}.log").read_text()

    def wait_for_output(self, text: str) -> None:
        """Return once the server has printed the text; fail after twenty seconds."""
        deadline = time.monotonic() + 20
        while text not in self.output:
            assert time.monotonic() < deadline, f"{text!r} was not printed:\n{self.output}"
            time.sleep(0.02)

    def children(self, name: str) -> list[int]:
        """Return the ids of the child processes whose command line holds `name`."""
        pids = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        )
        return [int(pid) for pid in pids if name in Path(f"/proc/{pid}/cmdline").read_text()]

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=120, trust_env=False)


DevServer = Callable[..., Server]


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[DevServer]:
    """Start `belem dev` on files written to a fresh folder; ended after the test."""
    with ExitStack() as stack:

        def start(path: str, files: dict[str, str] | None = None, *options: str) -> Server:
            for name, text in (files or {}).items():
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text)
            port = free_port()
            command = [BELEM, "dev", path, "--port", str(port), *options]
            process = stack.enter_context(running(command, tmp_path, os.environ, port=port))
            return Server(process, port, tmp_path)

        yield start


@pytest.fixture(scope="module")
def edge_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The example under `belem dev`, with the real weights, for one module of tests."""
    folder = tmp_path_factory.mktemp("edge-cache")
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".belem"))
    port = free_port()
    with running(
        [BELEM, "dev", ".", "--port", str(port)], folder, os.environ, port=port
    ) as process:
        yield Server(process, port, folder)


def kill(pid: int) -> None:
    """End a process as a crash or the out-of-memory killer does."""
    os.kill(pid, signal.SIGKILL)
