"""A hello worker through HTTP, beside workerd and beside uvicorn alone, in one run.

    python -m benchmarks.hello_http [--seconds N] [--rounds N] [--connections N]

The server has one core and the load generator (wrk if it is installed) another. Rounds alternate,
so that what else the machine does falls on all alike; the table has medians and ratios to workerd.
The CPU time of the server's process for one request hardly depends on what else runs.
workerd is installed with npm into the user's cache folder at the first run.
"""

import argparse
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

from benchmarks._http import Target, belem, free_port, load, measure, running, workerd
from rich.console import Console
from rich.table import Table

WORKER = "export default { async fetch(request, env) { return new Response('Hello World'); } };\n"
UVICORN_APP = """
BODY = b"Hello World"
HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"11")]
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
"""


@contextlib.contextmanager
def uvicorn(folder: Path) -> Generator[Target, None, None]:
    port = free_port()
    (folder / "bare.py").write_text(UVICORN_APP)
    command = [sys.executable, "-m", "uvicorn", "bare:app", "--no-access-log", "--port", str(port)]
    with running(command, port, folder) as pid:
        yield Target(port, pid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    servers: Mapping[str, Callable[[Path], contextlib.AbstractContextManager[Target]]] = {
        "belem": lambda folder: belem(folder, folder / "hello.js"),
        "workerd": lambda folder: workerd(folder, folder / "hello.js"),
        "uvicorn, bare": uvicorn,
    }
    if (os.cpu_count() or 1) < 2:
        raise SystemExit("This needs two cores: one for the server, one for the load.")
    figures: dict[str, list[Mapping[str, float]]] = {name: [] for name in servers}
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        folder = Path(directory)
        (folder / "hello.js").write_text(WORKER)
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
