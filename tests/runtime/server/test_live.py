import asyncio
from collections.abc import AsyncIterator

import pytest

from belem.isolates import (
    CpuLimitExceeded,
    Event,
    GuestThrew,
    IsolateLost,
    LogLine,
    MemoryLimitExceeded,
)
from belem.runtime.control import Binding
from belem.runtime.server import Composer, LiveWorker, PoolBounds, Revision
from belem.runtime.server.errors import WorkerUnavailable
from tests.runtime.server.conftest import Build

SLOW = """
  const path = new URL(request.url).pathname;
  if (path === "/wait") await scheduler.wait(300);
  if (path === "/loop") for (;;);
  if (path === "/late") ctx.waitUntil(scheduler.wait(300));
"""


def fetch(path: str = "/", body: bytes | AsyncIterator[bytes] | None = None) -> Event:
    method = "GET" if body is None else "POST"
    return Event("fetch", f"{method} http://hello.localhost{path}", body)


async def text(worker: LiveWorker, path: str = "/") -> str:
    reply = await worker.dispatch(fetch(path))
    assert isinstance(reply.body, bytes)
    return reply.body.decode()


def live(composer: Composer, revision: Revision, **options: object) -> LiveWorker:
    return LiveWorker(
        "hello",
        composer.host,
        revision,
        log=lambda line: None,
        **options,  # type: ignore[arg-type]  # as given
    )


async def test_a_worker_answers_with_its_bindings(composer: Composer, build: Build) -> None:
    revision = await build(
        "await env.NOTES.put('a', 'kept');return new Response(env.NAME + await env.NOTES.get('a'))",
        bindings=(Binding("NOTES", "kv_namespace"),),
        variables={"NAME": "belem "},
    )

    async with live(composer, revision) as worker:
        assert await text(worker) == "belem kept"


async def test_namespaces_are_apart_but_for_those_with_an_id(
    composer: Composer, build: Build
) -> None:
    bindings = (Binding("OWN", "kv_namespace"), Binding("SHARED", "kv_namespace", "one"))
    write = "await env.OWN.put('a', '1'); await env.SHARED.put('a', '2'); return new Response('')"
    read = "return new Response(await env.OWN.get('a') + ' ' + await env.SHARED.get('a'))"
    async with (
        live(composer, await build(write, worker="first", bindings=bindings)) as first,
        live(composer, await build(read, worker="second", bindings=bindings)) as second,
    ):
        await text(first)

        assert await text(second) == "null 2"


async def test_a_swap_sends_new_requests_to_the_new_version(
    composer: Composer, build: Build
) -> None:
    old = await build(SLOW + "return new Response('old')")
    new = await build(SLOW + "return new Response('new')", version="2")
    async with live(composer, old) as worker:
        waiting = asyncio.create_task(text(worker, "/wait"))
        await asyncio.sleep(0)

        worker.swap(new)

        assert worker.revision.version == "2"
        assert await text(worker) == "new"
        assert await waiting == "old"


async def test_the_old_version_closes_when_it_is_idle(composer: Composer, build: Build) -> None:
    async with live(composer, await build(SLOW + "return new Response('old')")) as worker:
        await text(worker, "/late")
        worker.swap(await build("return new Response('new')", version="2"))
        assert worker.in_flight == 1  # waitUntil still runs on the old version

        async with asyncio.timeout(10):
            while composer.host.isolates > 0:  # noqa: ASYNC110  # the host counts, and does not tell
                await asyncio.sleep(0.01)

        assert await text(worker) == "new"


async def test_the_old_version_is_cut_off_after_the_grace(composer: Composer, build: Build) -> None:
    old = await build("await scheduler.wait(60_000); return new Response('old')")
    async with live(composer, old, grace_seconds=0.05) as worker:
        waiting = asyncio.create_task(text(worker))
        await asyncio.sleep(0)

        worker.swap(await build("return new Response('new')", version="2"))

        with pytest.raises(IsolateLost):
            await waiting


async def test_a_busy_worker_gets_more_isolates(composer: Composer, build: Build) -> None:
    revision = await build(SLOW + "return new Response('')")
    async with live(composer, revision, bounds=PoolBounds(busy_at=2, isolates=3)) as worker:
        waiting = [asyncio.create_task(text(worker, "/wait")) for _ in range(12)]
        await asyncio.sleep(0)

        assert composer.host.isolates == 3
        assert worker.in_flight == 12
        await asyncio.gather(*waiting)


async def test_a_full_worker_refuses_at_once(composer: Composer, build: Build) -> None:
    revision = await build(SLOW + "return new Response('')")
    bounds = PoolBounds(busy_at=2, isolates=1, requests=3)
    async with live(composer, revision, bounds=bounds) as worker:
        waiting = [asyncio.create_task(text(worker, "/wait")) for _ in range(3)]
        await asyncio.sleep(0)

        with pytest.raises(WorkerUnavailable, match="3 requests in flight; the limit is 3"):
            await text(worker)

        await asyncio.gather(*waiting)


async def test_a_runaway_loop_does_not_hold_up_later_requests(
    composer: Composer, build: Build
) -> None:
    revision = await build(SLOW + "return new Response('fine')", cpu_ms=5_000)
    async with live(composer, revision) as worker:
        runaway = asyncio.create_task(text(worker, "/loop"))
        await asyncio.sleep(0.05)

        assert await text(worker) == "fine"
        assert not runaway.done()
        runaway.cancel()


async def test_a_dead_isolate_is_replaced(composer: Composer, build: Build) -> None:
    revision = await build(SLOW + "return new Response('fine')")
    async with live(composer, revision) as worker:
        with pytest.raises(CpuLimitExceeded):
            await text(worker, "/loop")

        assert await text(worker) == "fine"


async def test_a_request_that_no_guest_saw_survives_the_death_of_its_isolate(
    composer: Composer, build: Build
) -> None:
    revision = await build(SLOW + "return new Response('fine')")
    async with live(composer, revision, bounds=PoolBounds(isolates=1)) as worker:
        runaway = asyncio.create_task(text(worker, "/loop"))
        await asyncio.sleep(0.05)
        behind = asyncio.create_task(text(worker))

        assert await behind == "fine"
        with pytest.raises(CpuLimitExceeded):
            await runaway


async def test_a_streamed_request_is_not_sent_twice(composer: Composer, build: Build) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"x"

    revision = await build(SLOW + "return new Response(await request.text())")
    async with live(composer, revision, bounds=PoolBounds(isolates=1)) as worker:
        runaway = asyncio.create_task(text(worker, "/loop"))
        await asyncio.sleep(0.05)

        with pytest.raises(IsolateLost):
            await worker.dispatch(fetch("/", body()))

        with pytest.raises(CpuLimitExceeded):
            await runaway


async def test_a_limit_of_the_version_holds(composer: Composer, build: Build) -> None:
    revision = await build("for (;;);", cpu_ms=50)
    async with live(composer, revision) as worker:
        with pytest.raises(CpuLimitExceeded) as caught:
            await text(worker)

    assert caught.value.limit_ms == 50


async def test_console_and_errors_reach_their_callers(composer: Composer, build: Build) -> None:
    lines: list[LogLine] = []
    revision = await build("console.warn('careful'); throw new RangeError('far')")
    async with LiveWorker("hello", composer.host, revision, log=lines.append) as worker:
        with pytest.raises(GuestThrew, match="RangeError: far"):
            await text(worker)

    assert [(line.level, line.text) for line in lines] == [("warn", "careful")]


async def test_draining_waits_for_wait_until(composer: Composer, build: Build) -> None:
    revision = await build(
        "const late = async () => { await scheduler.wait(100); await env.N.put('a', 'late') };"
        "ctx.waitUntil(late()); return new Response('now')",
        bindings=(Binding("N", "kv_namespace", "n"),),
    )
    worker = live(composer, revision)
    await text(worker)

    await worker.drain(grace_seconds=10)

    entry = await composer.store.get("n", "a")
    assert entry is not None
    assert entry.value == b"late"


async def test_a_closed_worker_takes_nothing(composer: Composer, build: Build) -> None:
    worker = live(composer, await build("return new Response('')"))
    await worker.aclose()
    await worker.aclose()

    with pytest.raises(WorkerUnavailable):
        await text(worker)


async def test_memory_that_runs_out_is_said_to_have_run_out(
    composer: Composer, build: Build
) -> None:
    fill = "const held = []; for (;;) held.push(new Uint8Array(1 << 20).fill(1));"

    async with live(composer, await build(fill)) as worker:
        with pytest.raises(MemoryLimitExceeded, match="128 MiB"):
            await worker.dispatch(fetch())
