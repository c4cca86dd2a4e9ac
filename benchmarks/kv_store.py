"""aiokv's stores beside plain calls of the sqlite3 module, in one run on one disk.

    python -m benchmarks.kv_store [--folder PATH] [--operations N]

The peer is the least that keeps the same promises: one connection in WAL mode with
synchronous=FULL, one transaction for each put, called from one thread with nothing in between.
`one` is one caller after the other and shows what the threads cost; `many` is 64 concurrent callers
and shows what grouping writes gives back, which plain calls cannot have.
"""

import argparse
import asyncio
import contextlib
import itertools
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from belem.bindings.aiokv import MemoryStore, SQLiteStore, Store

CALLERS = 64
VALUE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Figures:
    p50_us: float
    per_second: float


Operation = Callable[[int], Awaitable[object]]


async def measure(operation: Operation, operations: int, callers: int) -> Figures:
    latencies: list[float] = []
    numbers = iter(range(operations))

    async def caller() -> None:
        for number in numbers:
            begun = time.perf_counter()
            await operation(number)
            latencies.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(callers):
            tasks.create_task(caller())
    elapsed = time.perf_counter() - begun
    return Figures(statistics.median(latencies) * 1e6, operations / elapsed)


class Plain:
    """The peer: the sqlite3 module, called on the spot."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)")

    async def put(self, number: int) -> None:
        self.connection.execute(
            "INSERT INTO entries VALUES (?, ?) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key(number).encode(), new_value()),
        )

    async def get(self, number: int) -> object:
        row = (key(number).encode(),)
        return self.connection.execute("SELECT value FROM entries WHERE key = ?", row).fetchone()


_serial = itertools.count()


def new_value() -> bytes:
    """Return a value that was never put: SQLite does not write what stands there already."""
    return next(_serial).to_bytes(8) + bytes(VALUE_BYTES - 8)


def key(number: int) -> str:
    return f"key:{number % 10_000:06}"


def of(store: Store) -> dict[str, Operation]:
    return {
        "put": lambda number: store.put("ns", key(number), new_value()),
        "get": lambda number: store.get("ns", key(number)),
    }


async def run(folder: Path, operations: int) -> None:
    async with contextlib.AsyncExitStack() as stack:
        plain = Plain(folder / "plain.sqlite")
        stack.callback(plain.connection.close)
        memory = await stack.enter_async_context(MemoryStore())
        sqlite = await stack.enter_async_context(SQLiteStore(folder / "aiokv.sqlite"))
        subjects: dict[str, dict[str, Operation]] = {
            "sqlite3 calls": {"put": plain.put, "get": plain.get},
            "MemoryStore": of(memory),
            "SQLiteStore": of(sqlite),
        }
        print(f"{'':14} {'':4} {'callers':>7} {'p50 us':>9} {'per second':>11} {'ratio':>7}")
        for kind in ("put", "get"):
            for callers in (1, CALLERS):
                peer: Figures | None = None
                for name, operation in subjects.items():
                    figures = await measure(operation[kind], operations, callers)
                    peer = peer or figures
                    print(
                        f"{name:14} {kind:4} {callers:7} {figures.p50_us:9.1f} "
                        f"{figures.per_second:11.0f} {figures.per_second / peer.per_second:7.2f}"
                    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--folder", type=Path, help="on the disk to measure; default: a temporary one"
    )
    parser.add_argument("--operations", type=int, default=5000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        asyncio.run(run(Path(folder), arguments.operations))


if __name__ == "__main__":
    main()
