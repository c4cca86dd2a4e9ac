"""Fresh isolates beside warm ones, and beside node's own ways to start fresh code, in one run.

    python -m benchmarks.isolate_cold [--rounds N] [--warm N] [--live N] [--cache FOLDER]

`fresh` is a new isolate of a hot image, its first answer and its end; `renewed` is what a request
pays that has an isolate of its own: an answer, and the isolate made fresh again after it. `warm` is
one more request in an isolate that has answered before, sequential, through the event loop. `dev
reload` builds a changed worker from source, spawns it and takes its first answer. The peers are
what node offers on the same machine: a `vm` context (no memory limit, no CPU limit, no protection
from hostile code), and a worker thread (a V8 isolate of its own), each from nothing to its first
answer.
"""

import argparse
import asyncio
import json
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from belem.isolates import Event, Host, Image, Limits, LogLine, Program
from belem.isolates.guests.js import javascript

WORKER = "export default { fetch(request) { return new Response('Hello World'); } };"
EVENT = Event("fetch", "GET http://localhost/\nhost:localhost\nuser-agent:bench\naccept:*/*\n")
PEER = """
const { Worker } = require("node:worker_threads");
const vm = require("node:vm");
const rounds = Number(process.argv[1]), times = { vm: [], thread: [] };
const clock = () => Number(process.hrtime.bigint()) / 1e3;
const source = new vm.Script("({ fetch() { return 'Hello World'; } })");
(async () => {
  for (let i = 0; i < rounds; i++) {
    const begun = clock();
    source.runInContext(vm.createContext({})).fetch();
    times.vm.push(clock() - begun);
  }
  const code = "const { parentPort } = require('node:worker_threads');" +
    "parentPort.on('message', () => parentPort.postMessage('Hello World'));";
  for (let i = 0; i < Math.min(rounds, 30); i++) {
    const begun = clock();
    const worker = new Worker(code, { eval: true });
    worker.postMessage("hi");
    await new Promise((resolve) => worker.once("message", resolve));
    times.thread.push(clock() - begun);
    await worker.terminate();
  }
  console.log(JSON.stringify(times));
})();
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Microseconds."""

    median: float
    p99: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Figures":
        ordered = sorted(seconds)
        return cls(statistics.median(ordered) * 1e6, ordered[int(len(ordered) * 0.99)] * 1e6)


async def timed(times: list[float], work: Awaitable[object]) -> None:
    begun = time.perf_counter()
    await work
    times.append(time.perf_counter() - begun)


def program(source: str) -> Program:
    return Program(main="worker.js", modules={"worker.js": source})


def silent(line: LogLine) -> None:
    pass


async def fresh(host: Host, image: Image, rounds: int) -> dict[str, Figures]:
    spawns: list[float] = []
    answers: list[float] = []
    wholes: list[float] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        isolate = host.spawn(image, {}, Limits(), silent)
        spawned = time.perf_counter()
        await isolate.dispatch(EVENT)
        answered = time.perf_counter()
        await isolate.aclose()
        spawns.append(spawned - begun)
        answers.append(answered - spawned)
        wholes.append(time.perf_counter() - begun)
    return {
        "fresh: spawn": Figures.of(spawns),
        "fresh: first answer": Figures.of(answers),
        "fresh: all in, with close": Figures.of(wholes),
    }


async def renewed(host: Host, image: Image, rounds: int) -> Figures:
    isolate = host.spawn(image, {}, Limits(), silent)
    times: list[float] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        reply = await isolate.dispatch(EVENT)
        await reply.settled()
        renewed = host.renew(isolate)
        times.append(time.perf_counter() - begun)
        if not renewed:  # the first one is compared as a whole, and ends
            isolate = host.spawn(image, {}, Limits(), silent)
    await isolate.aclose()
    return Figures.of(times)


async def warm(host: Host, image: Image, rounds: int) -> Figures:
    isolate = host.spawn(image, {}, Limits(), silent)
    times: list[float] = []
    for _ in range(rounds):
        await timed(times, isolate.dispatch(EVENT))
    await isolate.aclose()
    return Figures.of(times)


async def reload(host: Host, rounds: int) -> Figures:
    guest, times = javascript(), list[float]()

    async def once(number: int) -> None:
        image = await host.build(guest, program(f"{WORKER} // {time.time_ns()} {number}"))
        isolate = host.spawn(image, {}, Limits(), silent)
        await isolate.dispatch(EVENT)
        await isolate.aclose()

    for number in range(rounds):
        await timed(times, once(number))
    return Figures.of(times)


async def memory_kib(host: Host, image: Image, count: int) -> float:
    """Return what one more live isolate that has answered costs in proportional memory."""
    before = proportional_kib()
    isolates = [host.spawn(image, {}, Limits(), silent) for _ in range(count)]
    for isolate in isolates:
        await isolate.dispatch(EVENT)
    after = proportional_kib()
    for isolate in isolates:
        await isolate.aclose()
    return (after - before) / count


def proportional_kib() -> int:
    found = re.search(r"Pss:\s+(\d+)", Path("/proc/self/smaps_rollup").read_text())
    return int(found[1]) if found else 0


def peers(rounds: int) -> dict[str, Figures]:
    node = shutil.which("node")
    if node is None:
        return {}
    done = subprocess.run(
        [node, "-e", PEER, str(rounds)], capture_output=True, check=True, text=True, timeout=300
    )
    times = json.loads(done.stdout)
    return {
        "node vm context": Figures.of([us / 1e6 for us in times["vm"]]),
        "node worker thread": Figures.of([us / 1e6 for us in times["thread"]]),
    }


async def measure(
    cache: Path, rounds: int, warm_rounds: int, live: int
) -> tuple[dict[str, Figures], float]:
    rows: dict[str, Figures] = {}
    async with Host(cache, max_isolates=live + 10) as host:
        image = await host.build(javascript(), program(WORKER))
        await fresh(host, image, 50)
        rows["warm"] = await warm(host, image, warm_rounds)
        rows |= await fresh(host, image, rounds)
        rows["renewed: an answer, and fresh again"] = await renewed(host, image, rounds)
        rows["dev reload"] = await reload(host, min(rounds, 50))
        kib = await memory_kib(host, image, live)
    return rows | peers(rounds), kib


def show(rows: dict[str, Figures], kib: float, write: Callable[[str], object] = print) -> None:
    base = rows["warm"].median
    whole = rows["fresh: all in, with close"].median
    write(f"{'':36}{'median us':>11}{'p99 us':>11}{'x warm':>9}{'x fresh':>9}")
    for name, row in rows.items():
        ratios = f"{row.median / base:>9.2f}{row.median / whole:>9.2f}"
        write(f"{name:36}{row.median:>11.0f}{row.p99:>11.0f}{ratios}")
    write(f"memory of a live isolate that has answered: {kib:.0f} KiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=1000, help="fresh isolates (%(default)s)")
    parser.add_argument("--warm", type=int, default=5000, help="warm requests (%(default)s)")
    parser.add_argument("--live", type=int, default=1000, help="isolates alive (%(default)s)")
    parser.add_argument("--cache", type=Path, help="code cache; a temporary one by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or Path(folder) / "code"
        rows, kib = asyncio.run(measure(cache, options.rounds, options.warm, options.live))
    show(rows, kib)


if __name__ == "__main__":
    main()
