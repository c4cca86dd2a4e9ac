"""A served host for the end-to-end tests of many processes."""

import functools
import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import TextIO

import httpx

from tests.e2e.conftest import BELEM
from tests.support.processes import running

START_SECONDS = 120  # the engine is compiled where there is no code cache yet
WAIT_SECONDS = 30


@dataclass
class Served:
    """A host's addresses, its folder, and the options that it is started with."""

    folder: Path
    port: int
    control_port: int
    options: tuple[str, ...]
    supervisor: Popen[bytes] | None = field(default=None)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def output(self) -> str:
        return (self.folder / f".output-{self.control_port}.log").read_text()

    @contextmanager
    def serve(self) -> Generator[Popen[bytes], None, None]:
        command = [
            BELEM, "serve", "--data", str(self.data), "--port", str(self.port),
            "--control-port", str(self.control_port), "--inference", "unix:/nowhere", *self.options,
        ]  # fmt: skip
        with running(command, self.folder, os.environ, port=self.control_port) as process:
            self.supervisor = process
            wait_until(lambda: "is ready" in self.output, seconds=START_SECONDS)
            yield process

    def belem(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BELEM, *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    @contextmanager
    def tail(self, name: str, sink: TextIO) -> Generator[Popen[bytes], None, None]:
        """Follow a worker into a file, as JSON."""
        command = [BELEM, "tail", name, "--format", "json"]
        with Popen(command, stdout=sink, stderr=subprocess.DEVNULL, env=self._environment) as tail:
            try:
                yield tail
            finally:
                tail.terminate()

    @property
    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "BELEM_HOST": f"http://127.0.0.1:{self.control_port}",
            "BELEM_TOKEN_FILE": str(self.data / "token"),
        }

    def deploy(self, source: str, name: str = "hello") -> None:
        (self.folder / f"{name}.ts").write_text(source)
        deployed = self.belem("deploy", f"{name}.ts")
        assert deployed.returncode == 0, deployed.stderr

    def get(self, path: str, name: str = "hello") -> httpx.Response:
        """Ask on a connection of its own: any process may take it."""
        url = f"http://127.0.0.1:{self.port}{path}"
        headers = {"host": f"{name}.localhost", "connection": "close"}
        return _client().get(url, headers=headers)

    def host_processes(self) -> list[int]:
        """Return the ids of the host processes that run now."""
        assert self.supervisor is not None
        pid = self.supervisor.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in children if b"server.fleet" in _command(int(child))]


class Load:
    """Clients that ask for one path, over and over, each on a connection of its own."""

    def __init__(self, served: Served, path: str, *, clients: int = 4) -> None:
        self.answers: Counter[str] = Counter()
        self.failures: list[object] = []
        self._stop = threading.Event()
        self._url = f"http://127.0.0.1:{served.port}{path}"
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        with httpx.Client(trust_env=False, timeout=30) as client:
            while not self._stop.is_set():
                try:
                    response = client.get(self._url)
                except httpx.HTTPError as error:
                    self.failures.append(error)
                    continue
                self.answers[response.text] += 1
                if response.status_code != 200:
                    self.failures.append(response)


def wait_until(true: Callable[[], object], *, seconds: float = WAIT_SECONDS) -> None:
    """Return once something is so; fail when it takes too long."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    """Return whether the process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@functools.cache
def _client() -> httpx.Client:
    return httpx.Client(trust_env=False, timeout=30)  # making one takes longer than a request


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""
