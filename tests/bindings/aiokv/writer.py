"""A process for the tests: puts numbered keys and prints each number once it is acknowledged."""

import asyncio
import sys
from pathlib import Path

from belem.bindings.aiokv import SQLiteStore


async def _put(store: SQLiteStore, number: int) -> None:
    await store.put("ns", f"{number:06}", str(number).encode() * 100, metadata=str(number))
    print(number, flush=True)  # noqa: T201 # the test reads it


async def _main(path: Path, count: int) -> None:
    async with SQLiteStore(path) as store:
        for start in range(0, count, 8):
            await asyncio.gather(*(_put(store, start + offset) for offset in range(8)))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2])))
