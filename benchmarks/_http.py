"""What the HTTP benchmarks share: servers on the first core, load from the second."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.npm import npm_folder

WORKERD_VERSION = "1.20261117.1"
WORKERD_CONFIG = """
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:PORT", http = (), service = "main")]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "FILE")],
  compatibilityDate = "2026-11-01"
);
"""


@dataclass(frozen=True)
class Target:
    """A server that listens, its process, and the path of its hello."""

    port: int
    pid: int
    path: str = "/"
    control: Sequence[str] = ()  # options of `belem deploy`

    def deploy(self, project: Path) -> list[str]:
        """Return the command that deploys a project here."""
        command = [sys.executable, "-m", "belem", "deploy", str(project), "--name", project.stem]
        return [*command, *self.control]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def running(command: Sequence[str], port: int, folder: Path) -> Generator[int, None, None]:
    """Run a server on the first core until the block ends."""
    output = folder / f"{port}.log"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=sink,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, {0}),
        )
    try:
        deadline = time.monotonic() + 120
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} did not start:\n{output.read_text()}")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


@contextlib.contextmanager
def belem(
    folder: Path, *projects: Path, data: Path | None = None, options: Sequence[str] = ()
) -> Generator[Target, None, None]:
    """Serve projects, each under the name of its file or folder; the path is the first one's."""
    port, control_port = free_port(), free_port()
    data = data or folder / f"data-{port}"
    control = [
        "--host", f"http://127.0.0.1:{control_port}", "--token-file", str(data / "token"),
    ]  # fmt: skip
    serve = [
        sys.executable, "-m", "belem", "serve", "--data", str(data), "--port", str(port),
        "--control-port", str(control_port), "--inference", "unix:/nowhere", *options,
    ]  # fmt: skip
    with running(serve, control_port, folder) as pid:
        target = Target(port, pid, f"/{projects[0].stem}/" if projects else "/", control)
        for project in projects:
            subprocess.run(target.deploy(project), check=True, stdout=subprocess.DEVNULL)
        yield target


@contextlib.contextmanager
def workerd(folder: Path, worker: Path) -> Generator[Target, None, None]:
    """Serve one file with workerd."""
    port = free_port()
    config = folder / f"{worker.stem}-{port}.capnp"
    config.write_text(WORKERD_CONFIG.replace("PORT", str(port)).replace("FILE", worker.name))
    with running([str(workerd_binary()), "serve", str(config)], port, folder) as pid:
        yield Target(port, pid)


def workerd_binary() -> Path:
    pattern = "node_modules/@cloudflare/workerd-*/bin/workerd"
    return next(npm_folder("workerd", WORKERD_VERSION).glob(pattern))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(target: Target, connections: int, seconds: float) -> Mapping[str, float]:
    """Load a target and add what its process paid for one request."""
    before = cpu_seconds(target.pid)
    measured = load(target, connections, seconds)
    used = cpu_seconds(target.pid) - before
    return {**measured, "cpu_us": used / (measured["requests_per_second"] * seconds) * 1e6}


def load(target: Target, connections: int, seconds: float) -> Mapping[str, float]:
    """Load a target from the second core and return what was measured."""
    url = f"http://127.0.0.1:{target.port}{target.path}"
    wrk = shutil.which("wrk")
    if wrk is not None:
        command = [wrk, "-t1", f"-c{connections}", f"-d{seconds:g}s", "--latency", url]
    else:
        generator = Path(__file__).with_name("_load.py")
        command = [
            sys.executable, str(generator), str(target.port), target.path, str(connections),
            str(seconds),
        ]  # fmt: skip
    shown = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        timeout=seconds + 60,
        preexec_fn=lambda: os.sched_setaffinity(0, {1}),
    ).stdout
    if wrk is None:
        measured: Mapping[str, float] = json.loads(shown)
        return measured
    return {
        "requests_per_second": float(re.findall(r"Requests/sec:\s+([\d.]+)", shown)[0]),
        "p50_ms": _wrk_ms(shown, "50%"),
        "p99_ms": _wrk_ms(shown, "99%"),
    }


def _wrk_ms(shown: str, percentile: str) -> float:
    value, unit = re.findall(rf"{percentile}\s+([\d.]+)(us|ms|s)", shown)[0]
    return float(value) * {"us": 0.001, "ms": 1, "s": 1000}[unit]
