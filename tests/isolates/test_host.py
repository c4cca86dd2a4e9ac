"""The host's life: spawning, closing, and what thousands of isolates leave behind."""

import asyncio
import gc
import os
import re
from pathlib import Path

import pytest

from belem.isolates import (
    CpuLimitExceeded,
    Event,
    Guest,
    Host,
    IsolateBusy,
    IsolateLost,
    Limits,
    LoadError,
    Program,
)
from belem.isolates.pressure import MemoryPressure
from tests.isolates.conftest import Spawn

PROGRAM = Program(main="w.js", modules={"w.js": "export const hi = () => 'hi';"})

WAITING = Program(
    main="w.js",
    modules={"w.js": "export const hi = () => 'hi'; export const wait = () => sleep(30_000);"},
)


def resident_kib() -> int:
    found = re.search(r"Rss:\s+(\d+)", Path("/proc/self/smaps_rollup").read_text())
    assert found
    return int(found[1])


def mappings() -> int:
    return len(Path("/proc/self/maps").read_text().splitlines())


async def test_thousands_of_isolates_leave_nothing_behind(host: Host, mini: Guest) -> None:
    image = await host.build(mini, PROGRAM)

    async def round_of(count: int) -> None:
        for _ in range(count):
            isolate = host.spawn(image, {}, Limits(), lambda line: None)
            assert (await isolate.dispatch(Event("hi"))).head == "hi"
            await isolate.aclose()

    await round_of(100)
    gc.collect()
    before = resident_kib(), mappings(), len(os.listdir("/proc/self/fd"))
    await round_of(2000)
    gc.collect()

    assert host.isolates == 0
    assert resident_kib() - before[0] < 8_000
    assert mappings() - before[1] < 20
    assert len(os.listdir("/proc/self/fd")) == before[2]


async def test_live_isolates_are_counted_and_bounded(cache_dir: Path, mini: Guest) -> None:
    async with Host(cache_dir, max_isolates=2) as host:
        image = await host.build(mini, WAITING)
        busy = [host.spawn(image, {}, Limits(), lambda line: None) for _ in range(2)]
        waiting = [asyncio.create_task(isolate.dispatch(Event("wait"))) for isolate in busy]
        await asyncio.sleep(0)

        with pytest.raises(IsolateBusy, match="2 isolates"):
            host.spawn(image, {}, Limits(), lambda line: None)
        await busy[0].aclose()

        assert host.isolates == 1
        host.spawn(image, {}, Limits(), lambda line: None)
        for task in waiting:
            task.cancel()


async def test_a_full_host_ends_the_isolate_that_was_idle_the_longest(
    cache_dir: Path, mini: Guest
) -> None:
    async with Host(cache_dir, max_isolates=3) as host:
        image = await host.build(mini, WAITING)
        first, second, third = (
            host.spawn(image, {}, Limits(), lambda line: None) for _ in range(3)
        )
        waiting = asyncio.create_task(first.dispatch(Event("wait")))
        assert (await second.dispatch(Event("hi"))).head == "hi"

        newest = host.spawn(image, {}, Limits(), lambda line: None)

        assert third.dead is not None
        assert (await newest.dispatch(Event("hi"))).head == "hi"
        assert (await second.dispatch(Event("hi"))).head == "hi"
        waiting.cancel()


async def test_closing_a_host_ends_its_isolates(cache_dir: Path, mini: Guest) -> None:
    host = Host(cache_dir)
    image = await host.build(mini, PROGRAM)
    isolate = host.spawn(image, {}, Limits(), lambda line: None)

    await host.aclose()
    await host.aclose()
    host.close()

    with pytest.raises(IsolateLost, match="closed"):
        await isolate.dispatch(Event("hi"))
    with pytest.raises(RuntimeError, match="closed"):
        host.spawn(image, {}, Limits(), lambda line: None)
    with pytest.raises(RuntimeError, match="closed"):
        await host.build(mini, PROGRAM)


async def test_a_host_with_live_isolates_is_not_closed_from_under_them(
    host: Host, mini: Guest
) -> None:
    image = await host.build(mini, PROGRAM)
    isolate = host.spawn(image, {}, Limits(), lambda line: None)

    with pytest.raises(RuntimeError, match="use aclose"):
        host.close()

    assert (await isolate.dispatch(Event("hi"))).head == "hi"


async def test_a_host_without_a_cache_works_too(tmp_path: Path) -> None:
    from tests.isolates import wat

    async with Host() as host:
        image = await host.build(
            wat.guest(tmp_path, wat.wasm()), Program(main="w", modules={"w": ""})
        )
        isolate = host.spawn(image, {}, Limits(), lambda line: None)

        assert (await isolate.dispatch(Event("x"))).head == "x\n"


async def test_requests_of_many_isolates_run_side_by_side(spawn: Spawn) -> None:
    source = "export const work = async (head) => { await sleep(3); return head; };"
    isolates = [await spawn(source) for _ in range(40)]

    replies = await asyncio.gather(
        *(isolate.dispatch(Event("work", str(n))) for n, isolate in enumerate(isolates))
    )

    assert [reply.head for reply in replies] == [str(n) for n in range(40)]


async def test_counts_say_what_became_of_isolates(cache_dir: Path, mini: Guest) -> None:
    program = Program(main="w.js", modules={"w.js": "export const loop = () => { for (;;); };"})
    async with Host(cache_dir) as host:
        image = await host.build(mini, program)
        isolates = [host.spawn(image, {}, Limits(cpu_ms=20), lambda line: None) for _ in range(3)]
        memory_bytes = sum(isolate.memory_bytes for isolate in isolates[:1])

        with pytest.raises(CpuLimitExceeded):
            await isolates[2].dispatch(Event("loop"))
        await isolates[1].aclose()

        counts = host.counts()
        assert counts["isolates"] == 1
        assert counts["isolate_memory_bytes"] == memory_bytes
        assert counts["isolates_spawned"] == 3
        assert counts["isolates_ended"] == {"cpu-limit": 1, "closed": 1}
        assert counts["images_built"] in (0, 1)  # the cache of this run may have it


async def test_an_image_that_is_spawned_much_gets_a_memory_of_its_own(
    host: Host, mini: Guest
) -> None:
    source = "let n = 40; export const next = () => ++n;"
    image = await host.build(mini, Program(main="w.js", modules={"w.js": source}))

    for _ in range(40):
        isolate = host.spawn(image, {}, Limits(), lambda line: None)
        heads = [(await isolate.dispatch(Event("next"))).head for _ in range(2)]
        await isolate.aclose()
        await host.build(mini, Program(main="w.js", modules={"w.js": "//"}))  # lets it be made

        assert heads == ["41", "42"]


async def test_a_worker_that_comes_back_does_not_wait_for_anothers_top_level(
    cache_dir: Path, mini: Guest
) -> None:
    kept = Program(main="w.js", modules={"w.js": "export const hi = () => 'kept';"})
    endless = Program(main="w.js", modules={"w.js": "for (;;);"})
    async with Host(cache_dir) as host:
        await host.build(mini, kept)
    async with Host(cache_dir) as host:
        building = asyncio.create_task(host.build(mini, endless, Limits(startup_cpu_ms=500)))
        await asyncio.sleep(0)
        image = await host.build(mini, kept)

        assert not building.done()
        isolate = host.spawn(image, {}, Limits(), lambda line: None)
        assert (await isolate.dispatch(Event("hi"))).head == "kept"
        with pytest.raises(LoadError, match="CPU time"):
            await building


async def test_a_full_host_spares_those_that_were_asked_since_it_looked(
    cache_dir: Path, mini: Guest
) -> None:
    async with Host(cache_dir, max_isolates=3) as host:
        image = await host.build(mini, WAITING)
        first, second, third = (
            host.spawn(image, {}, Limits(), lambda line: None) for _ in range(3)
        )

        host.spawn(image, {}, Limits(), lambda line: None)  # looks, and ends the first
        await second.dispatch(Event("hi"))
        host.spawn(image, {}, Limits(), lambda line: None)

        assert [isolate.dead is None for isolate in (first, second, third)] == [False, True, False]


class Short(MemoryPressure):
    """A machine that is short of memory while it is told so."""

    high = True

    def is_high(self) -> bool:
        return self.high


async def test_a_host_short_of_memory_ends_what_is_idle(cache_dir: Path, mini: Guest) -> None:
    short = Short()
    async with Host(cache_dir, pressure=short, look_every_seconds=0.01) as host:
        image = await host.build(mini, WAITING)
        busy, idle = (host.spawn(image, {}, Limits(), lambda line: None) for _ in range(2))
        waiting = asyncio.create_task(busy.dispatch(Event("wait")))

        async with asyncio.timeout(10):
            while idle.dead is None:  # noqa: ASYNC110  # an isolate's end is not told
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        short.high = False
        spared = host.spawn(image, {}, Limits(), lambda line: None)
        await asyncio.sleep(0.05)

        assert busy.dead is None
        assert spared.dead is None
        waiting.cancel()
