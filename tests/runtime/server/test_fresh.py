"""A fresh isolate for each request: nothing passes from one to the next."""

import asyncio
import dataclasses
from pathlib import Path

import pytest

from belem.isolates import Event, Host, Limits, Program
from belem.isolates.guests.js import javascript
from belem.isolates.written import WrittenPages
from belem.runtime.server import Composer, PoolBounds
from belem.runtime.server.fresh import FreshPool
from tests.runtime.server.conftest import Build

STATEFUL = """
  globalThis.count = (globalThis.count ?? 0) + 1;
  const before = Array.prototype.mark ?? "clean";
  Array.prototype.mark = "dirty";
  setInterval(() => { globalThis.count += 100; }, 1);
  if (new URL(request.url).pathname === "/late") ctx.waitUntil(scheduler.wait(20));
  if (new URL(request.url).pathname === "/loop") for (;;);
  return new Response([count, before, Math.random(), crypto.randomUUID()].join(" "));
"""


def fetch(path: str = "/") -> Event:
    return Event("fetch", f"GET http://hello.localhost{path}")


async def text(pool: FreshPool, path: str = "/") -> str:
    reply = await pool.dispatch(fetch(path))
    assert isinstance(reply.body, bytes)
    return reply.body.decode()


async def test_no_request_sees_another_ones_state(composer: Composer, build: Build) -> None:
    revision = await build(STATEFUL, isolation="request")
    pool = FreshPool(composer.host, revision, log=lambda line: None)

    answers = [await text(pool) for _ in range(5)]
    answers += await asyncio.gather(*(text(pool) for _ in range(5)))

    assert all(answer.startswith("1 clean ") for answer in answers)
    assert len({answer.split()[2] for answer in answers}) == 10
    assert len({answer.split()[3] for answer in answers}) == 10
    await pool.aclose()
    assert composer.host.isolates == 0


async def test_isolates_are_used_again_and_nobody_can_tell(
    composer: Composer, build: Build
) -> None:
    if not WrittenPages().supported:
        pytest.skip("this system does not tell which pages were written")
    revision = await build(STATEFUL, isolation="request")
    pool = FreshPool(composer.host, revision, log=lambda line: None)
    for _ in range(40):  # until the image has a memory of its own, and rewinding is known to work
        await text(pool)
    before = composer.host.counts()["isolates_spawned"]

    answers = [await text(pool) for _ in range(40)]

    assert all(answer.startswith("1 clean ") for answer in answers)
    assert len({answer.split()[3] for answer in answers}) == 40
    assert composer.host.counts()["isolates_spawned"] == before
    await pool.aclose()


async def test_an_isolate_ends_once_its_request_has_settled(
    composer: Composer, build: Build
) -> None:
    revision = await build(STATEFUL, isolation="request")
    pool = FreshPool(composer.host, revision, log=lambda line: None, bounds=PoolBounds(ready=0))

    reply = await pool.dispatch(fetch("/late"))
    while_waiting = composer.host.isolates
    await reply.settled()
    await asyncio.sleep(0)

    assert while_waiting == 1
    assert composer.host.isolates == 0
    await pool.aclose()


async def test_a_stock_is_filled_between_requests_and_is_bounded(
    composer: Composer, build: Build
) -> None:
    revision = await build(STATEFUL, isolation="request")
    pool = FreshPool(composer.host, revision, log=lambda line: None, bounds=PoolBounds(ready=3))

    first = await pool.dispatch(fetch())
    await first.settled()
    for _ in range(10):
        await asyncio.sleep(0)

    assert composer.host.isolates == 3
    assert (await text(pool)).startswith("1 clean ")
    await pool.aclose()


async def test_a_stock_that_nobody_needs_is_given_up(composer: Composer, build: Build) -> None:
    revision = await build(STATEFUL, isolation="request")
    bounds = PoolBounds(ready=3, idle_seconds=0.05)
    pool = FreshPool(composer.host, revision, log=lambda line: None, bounds=bounds)
    await text(pool)

    async with asyncio.timeout(10):
        while composer.host.isolates:  # noqa: ASYNC110  # isolates count, and do not tell
            await asyncio.sleep(0.02)

    assert (await text(pool)).startswith("1 clean ")
    await pool.aclose()


async def test_a_runaway_ends_alone(composer: Composer, build: Build) -> None:
    revision = await build(STATEFUL, isolation="request")
    pool = FreshPool(composer.host, revision, log=lambda line: None)

    results = await asyncio.gather(
        pool.dispatch(fetch("/loop")), *(text(pool) for _ in range(4)), return_exceptions=True
    )

    assert type(results[0]).__name__ == "CpuLimitExceeded"
    assert all(str(answer).startswith("1 clean ") for answer in results[1:])
    await pool.aclose()


async def test_a_stock_ends_no_other_workers_isolates(code_cache: Path, build: Build) -> None:
    revision = await build(STATEFUL, isolation="request")
    async with Host(code_cache, max_isolates=2) as small:
        image = await small.build(
            javascript(), Program(main="w", modules={"w": "export default {}"})
        )
        idle = small.spawn(image, {}, Limits(), lambda line: None)
        own = dataclasses.replace(revision, image=image)
        pool = FreshPool(small, own, log=lambda line: None, bounds=PoolBounds(ready=3))

        reply = await pool.dispatch(Event("handlers"))
        await reply.settled()
        for _ in range(10):
            await asyncio.sleep(0)

        assert idle.dead is None
        await pool.aclose()
