"""Isolates that requests share: when they go."""

import asyncio

from belem.isolates import Event
from belem.runtime.server import Composer, PoolBounds
from belem.runtime.server.shared import SharedPool
from tests.runtime.server.conftest import Build

COUNTING = """
  globalThis.count = (globalThis.count ?? 0) + 1;
  if (new URL(request.url).pathname === "/fill") {
    globalThis.held = [];
    for (let n = 0; n < 119; n++) held.push(new Uint8Array(1 << 20).fill(1));
  }
  return new Response(String(count));
"""


async def count(pool: SharedPool, path: str = "/") -> int:
    reply = await pool.dispatch(Event("fetch", f"GET http://hello.localhost{path}"))
    assert isinstance(reply.body, bytes)
    return int(reply.body)


async def test_requests_share_an_isolate_until_it_was_idle_for_long(
    composer: Composer, build: Build
) -> None:
    pool = SharedPool(
        composer.host,
        await build(COUNTING),
        log=lambda line: None,
        bounds=PoolBounds(idle_seconds=0.1),
    )
    counts = [await count(pool) for _ in range(3)]

    async with asyncio.timeout(10):
        while composer.host.isolates:  # noqa: ASYNC110  # isolates count, and do not tell
            await asyncio.sleep(0.02)

    assert counts == [1, 2, 3]
    assert await count(pool) == 1
    await pool.aclose()


async def test_an_isolate_whose_memory_is_nearly_full_is_replaced(
    composer: Composer, build: Build
) -> None:
    pool = SharedPool(composer.host, await build(COUNTING), log=lambda line: None)

    assert await count(pool) == 1
    assert await count(pool, "/fill") == 2
    async with asyncio.timeout(10):
        while composer.host.isolates:  # noqa: ASYNC110  # a thread frees it, and does not tell
            await asyncio.sleep(0.01)

    assert await count(pool) == 1
    await pool.aclose()
