"""How long a save takes to show: `belem dev` beside `wrangler dev`, in one run.

    python -m benchmarks.reload [--saves N]

Both serve the same TypeScript worker of two modules. A save is timed from the write to the first
answer that has the new text, asked for again and again; saves alternate between the two. wrangler
is installed with npm into the user's cache folder at the first run.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.support.npm import npm_folder

WRANGLER_VERSION = "4.86.0"
WORKER = """
import { text } from "./text";
export default {
  fetch(request: Request): Response {
    return new Response(text satisfies string);
  },
};
"""
CONFIG = {"name": "reload", "main": "worker.ts", "compatibility_date": "2026-04-01"}
START_SECONDS = 60
SAVE_SECONDS = 20


@dataclass
class Server:
    """A dev server and the folder that it watches."""

    name: str
    folder: Path
    port: int
    saves: int = 0

    def save(self) -> float:
        """Write a new text and return the milliseconds until it is answered."""
        self.saves += 1
        text = f"save {self.saves}"
        started = time.perf_counter()
        (self.folder / "text.ts").write_text(f"export const text: string = '{text}';\n")
        while self.answer() != text:
            if time.perf_counter() - started > SAVE_SECONDS:
                sys.exit(f"{self.name} did not show a save within {SAVE_SECONDS} seconds")
        return (time.perf_counter() - started) * 1000

    def answer(self) -> str:
        """Ask once; an error is an empty answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=5) as response:
                return str(response.read(), "utf-8")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return ""


@contextmanager
def serving(name: str, command: Sequence[str]) -> Generator[Server]:
    """Run a dev server on a fresh copy of the worker until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "worker.ts").write_text(WORKER)
        (folder / "text.ts").write_text("export const text: string = 'first';\n")
        (folder / "wrangler.json").write_text(json.dumps(CONFIG))
        with (folder / ".output").open("wb") as output:
            process = subprocess.Popen(
                [*command, "--port", str(port)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "CI": "1"},
            )
        server = Server(name, folder, port)
        try:
            deadline = time.monotonic() + START_SECONDS
            while server.answer() != "first":
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{name} did not start:\n{(folder / '.output').read_text()}")
                time.sleep(0.05)
            yield server
        finally:
            process.terminate()
            process.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--saves", type=int, default=15)
    saves = parser.parse_args().saves
    wrangler = npm_folder("wrangler", WRANGLER_VERSION) / "node_modules" / ".bin" / "wrangler"
    belem = [sys.executable, "-m", "belem", "dev", "."]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving("wrangler dev", [str(wrangler), "dev"])),
            stack.enter_context(serving("belem dev", belem)),
        ]
        times: dict[str, list[float]] = {server.name: [] for server in servers}
        for _ in range(saves):
            for server in servers:
                times[server.name].append(server.save())
                time.sleep(0.3)  # let each settle, as between two saves of a person
    report(times)


def report(times: dict[str, list[float]]) -> None:
    """Print medians and worst, with the ratio to wrangler."""
    base = statistics.median(times["wrangler dev"])
    table = Table("server", "median ms", "worst ms", "to wrangler", title="from save to new answer")
    for name, measured in times.items():
        median = statistics.median(measured)
        table.add_row(name, f"{median:.0f}", f"{max(measured):.0f}", f"{median / base:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
