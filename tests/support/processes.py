"""Real processes for tests: started, waited for, and ended whatever happens."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["free_port", "running", "wait_for_port"]

_START_SECONDS = 120
_STOP_SECONDS = 20


def free_port() -> int:
    """Return a TCP port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for_port(port: int, process: subprocess.Popen[bytes], output: Path) -> None:
    """Return once something listens on the port; fail if the process ends before that."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(
                f"{process.args!r} ended: {process.returncode}\n{output.read_text()}"
            )
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"{process.args!r} does not listen on {port}\n{output.read_text()}")


@contextmanager
def running(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], *, port: int
) -> Generator[subprocess.Popen[bytes]]:
    """Run a server in a process group of its own until the block ends; its output is a file."""
    output = folder / f".output-{port}.log"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for_port(port, process, output)
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process as Ctrl-C does, and its whole group if that is not enough."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise AssertionError(f"{process.args!r} did not end within {_STOP_SECONDS} s") from None
