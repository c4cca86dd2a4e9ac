"""A hello worker through HTTP, beside workerd and beside uvicorn alone, in one run.

    python -m benchmarks.hello_http [--seconds N] [--rounds N] [--connections N]

The server has one core and the load generator (wrk if it is installed) another. Rounds alternate,
so that what else the machine does falls on all alike; the table has medians and ratios to workerd.
The CPU time of the server's process for one request hardly depends on what else runs.
workerd is installed with npm into the user's cache folder at the first run.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.support.npm import npm_folder

WORKERD_VERSION = "1.20261117.1"
WORKER = "export default { async fetch(request, env) { return new Response('Hello World'); } };\n"
WORKERD_CONFIG = """
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .hello)],
  sockets = [(name = "http", address = "127.0.0.1:PORT", http = (), service = "main")]
);
const hello :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-11-01"
);
"""
UVICORN_APP = """
BODY = b"Hello World"
HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"11")]
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
"""


@dataclass(frozen=True)
class Target:
    """A server that listens, its process, and the path of its hello."""

    port: int
    pid: int
    path: str = "/"


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
def belem(folder: Path) -> Generator[Target, None, None]:
    port, control_port = free_port(), free_port()
    command = [sys.executable, "-m", "belem"]
    control = [
        "--host", f"http://127.0.0.1:{control_port}", "--token-file", str(folder / "data/token"),
    ]  # fmt: skip
    serve = [
        *command, "serve", "--data", str(folder / "data"), "--port", str(port),
        "--control-port", str(control_port), "--inference", "unix:/nowhere",
    ]  # fmt: skip
    with running(serve, control_port, folder) as pid:
        subprocess.run(
            [*command, "deploy", str(folder / "worker.js"), "--name", "hello", *control],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        yield Target(port, pid, "/hello/")


@contextlib.contextmanager
def workerd(folder: Path) -> Generator[Target, None, None]:
    port = free_port()
    (folder / "hello.capnp").write_text(WORKERD_CONFIG.replace("PORT", str(port)))
    with running([str(workerd_binary()), "serve", "hello.capnp"], port, folder) as pid:
        yield Target(port, pid)


@contextlib.contextmanager
def uvicorn(folder: Path) -> Generator[Target, None, None]:
    port = free_port()
    (folder / "bare.py").write_text(UVICORN_APP)
    command = [sys.executable, "-m", "uvicorn", "bare:app", "--no-access-log", "--port", str(port)]
    with running(command, port, folder) as pid:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    servers: Mapping[str, Callable[[Path], contextlib.AbstractContextManager[Target]]] = {
        "belem": belem,
        "workerd": workerd,
        "uvicorn, bare": uvicorn,
    }
    if (os.cpu_count() or 1) < 2:
        raise SystemExit("This needs two cores: one for the server, one for the load.")
    figures: dict[str, list[Mapping[str, float]]] = {name: [] for name in servers}
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        folder = Path(directory)
        (folder / "worker.js").write_text(WORKER)
        targets = {name: stack.enter_context(start(folder)) for name, start in servers.items()}
        for target in targets.values():
            load(target, options.connections, 1)
        for _ in range(options.rounds):
            for name, target in targets.items():
                figures[name].append(measure(target, options.connections, options.seconds))
    show(figures, options.connections)


def show(figures: Mapping[str, Sequence[Mapping[str, float]]], connections: int) -> None:
    """Print medians, and each as a ratio to workerd's."""
    columns = ("requests_per_second", "p50_ms", "p99_ms", "cpu_us")
    medians = {
        name: {column: statistics.median(run[column] for run in runs) for column in columns}
        for name, runs in figures.items()
    }
    tool = "wrk" if shutil.which("wrk") else "asyncio"
    table = Table(title=f"hello through HTTP, one core, {connections} connections ({tool})")
    headings = ("server", "requests/s", "to workerd", "p50 ms", "p99 ms", "to workerd", "CPU us")
    for heading in (*headings, "to workerd"):
        table.add_column(heading, justify="left" if heading == "server" else "right")
    peer = medians["workerd"]
    for name, median in medians.items():
        table.add_row(
            name,
            f"{median['requests_per_second']:.0f}",
            f"{median['requests_per_second'] / peer['requests_per_second']:.2f}",
            f"{median['p50_ms']:.2f}",
            f"{median['p99_ms']:.2f}",
            f"{median['p99_ms'] / peer['p99_ms']:.2f}",
            f"{median['cpu_us']:.0f}",
            f"{median['cpu_us'] / peer['cpu_us']:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
