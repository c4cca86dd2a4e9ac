"""How many workers does one host hold, and what does one that rests cost its next caller?

    python -m benchmarks.density [--workers N] [--clients N]

Deploys N workers, each unlike the others, over the control API, and asks each once; then restarts
the host, so that all but a few rest on the disk, and asks each again: once cold, once warm. The
peer is workerd, which is started anew for a worker that is not in memory.
"""

import argparse
import asyncio
import re
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import httpx
from benchmarks._http import Target, belem, workerd
from rich.console import Console
from rich.progress import track
from rich.table import Table

SOURCE = """
const me = {number};
let served = 0;
export default {{ async fetch(request) {{
  served++;
  return Response.json({{ me, served, path: new URL(request.url).pathname }});
}} }};
"""

MOST_LIVE = 1000  # isolates of one host


async def each(
    count: int, clients: int, work: Callable[[int], Awaitable[None]], title: str
) -> float:
    """Do work for each number, some at a time, and return how long all took."""
    started = time.perf_counter()
    numbers = iter(track(range(count), description=title, transient=True))

    async def client() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    return time.perf_counter() - started


async def deploy(target: Target, token: str, count: int, clients: int) -> float:
    """Upload every worker as wrangler does."""
    async with httpx.AsyncClient(
        base_url=target.control[1], headers={"authorization": f"Bearer {token}"}, timeout=60
    ) as http:

        async def put(number: int) -> None:
            metadata = '{"main_module": "worker.js", "compatibility_date": "2026-11-01"}'
            answer = await http.put(
                f"/client/v4/accounts/belem/workers/scripts/worker-{number}",
                files={
                    "metadata": (None, metadata, "application/json"),
                    "worker.js": (
                        "worker.js",
                        SOURCE.format(number=number),
                        "application/javascript+module",
                    ),
                },
            )
            answer.raise_for_status()

        return await each(count, clients, put, "deploying")


async def ask(
    target: Target, count: int, clients: int, title: str, *, first: int = 0
) -> tuple[float, list[float]]:
    """Ask each of `count` workers once; return the time that took and the answers' milliseconds."""
    times: list[float] = []
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.port}", timeout=60) as http:

        async def get(offset: int) -> None:
            number = first + offset
            started = time.perf_counter()
            answer = await http.get(f"/worker-{number}/x")
            times.append((time.perf_counter() - started) * 1000)
            if answer.status_code != 200 or answer.json()["me"] != number:
                raise SystemExit(f"worker-{number} answered {answer.status_code}: {answer.text}")

        return await each(count, clients, get, title), times


def token(target: Target) -> str:
    return Path(target.control[3]).read_text().strip()


def memory_mib(pid: int) -> float:
    """Return the memory of a process that no file backs: images are mapped from the cache."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(kib) for kib in re.findall(r"Anonymous:\s+(\d+)", text)) / 1024


def start_of_workerd(folder: Path, rounds: int = 5) -> float:
    """Return the median milliseconds from a start of workerd to its first answer."""
    (folder / "peer.js").write_text(SOURCE.format(number=1))
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        with workerd(folder, folder / "peer.js") as target:
            httpx.get(f"http://127.0.0.1:{target.port}/x").raise_for_status()
            times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--workers", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    count, clients = options.workers, options.clients
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        data = folder / "data"
        with belem(folder, data=data) as target:
            deployed_s = asyncio.run(deploy(target, token(target), count, clients))
            asked_s, _ = asyncio.run(ask(target, count, clients, "first requests"))
            full_mib = memory_mib(target.pid)
        started = time.perf_counter()
        with belem(folder, data=data) as target:
            restarted_s = time.perf_counter() - started
            empty_mib = memory_mib(target.pid)
            _, cold = asyncio.run(ask(target, count, 1, "after a restart"))
            some = min(count, 500)
            _, warm = asyncio.run(ask(target, some, 1, "once more", first=count - some))
            again_mib = memory_mib(target.pid)
        peer_ms = start_of_workerd(folder)
    live = min(count, MOST_LIVE)
    table = Table(title=f"{count} workers on one host", show_header=False)
    for name, value in (
        ("deployed, workers/s", f"{count / deployed_s:.0f}"),
        ("first requests, workers/s", f"{count / asked_s:.0f}"),
        ("memory of its own after them, MiB", f"{full_mib:.0f}"),
        ("restart to listening, s", f"{restarted_s:.1f}"),
        ("memory of its own after the restart, MiB", f"{empty_mib:.0f}"),
        ("a resting worker's answer, p50 / p99 ms", quantiles(cold)),
        ("the same, less a warm one's, p50 ms", f"{median(cold) - median(warm):.2f}"),
        ("memory of its own after those, MiB", f"{again_mib:.0f}"),
        ("the same for each live worker, KiB", f"{(again_mib - empty_mib) * 1024 / live:.0f}"),
        ("workerd, start to answer, p50 ms", f"{peer_ms:.0f}"),
        ("ratio", f"{median(cold) / peer_ms:.3f}"),
    ):
        table.add_row(name, value)
    Console().print(table)


def median(times: Sequence[float]) -> float:
    return statistics.median(times)


def quantiles(times: Sequence[float]) -> str:
    return f"{median(times):.2f} / {sorted(times)[int(len(times) * 0.99)]:.2f}"


if __name__ == "__main__":
    main()
