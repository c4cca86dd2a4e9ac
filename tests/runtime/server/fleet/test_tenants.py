import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from belem.runtime.server.errors import WorkerUnavailable
from belem.runtime.server.fleet.channel import Answer
from belem.runtime.server.fleet.errors import HostLost, HostSilent
from belem.runtime.server.fleet.hop import Hop
from belem.runtime.server.fleet.tenants import TenantBounds, Tenants
from belem.runtime.server.observability import Snapshot
from belem.sdk import Json


class FakeProcess:
    """A process that does nothing, and dies when a test says so."""

    def __init__(self, worker: str, pid: int) -> None:
        self.worker = worker
        self.pid = pid
        self.hop = Hop(Path("/nowhere"))
        self.counted: Snapshot = {"workers": {worker: {"requests": 1}}}
        self.ended = asyncio.Event()
        self.how_it_ended = "was killed"
        self.calls: list[str] = []
        self.silent = False
        self.graces_seconds: list[float] = []

    async def call(
        self, method: str, values: Mapping[str, Json] | None = None, payload: bytes = b"",
        *, timeout_seconds: float = 1.0,
    ) -> Answer:  # fmt: skip
        if self.silent:
            raise HostSilent("It did not answer.")
        self.calls.append(method)
        return Answer()

    async def count(self, *, timeout_seconds: float) -> None:
        await self.call("snapshot")

    async def aclose(self, *, grace_seconds: float = 0.0) -> None:
        self.graces_seconds.append(grace_seconds)
        self.ended.set()


class House:
    """Tenants over fakes, and what became of them."""

    def __init__(self) -> None:
        self.started: list[FakeProcess] = []
        self.counted: list[Snapshot] = []
        self.fails: HostLost | None = None
        self.hold: asyncio.Event | None = None
        self.tenants = self.with_bounds()

    def with_bounds(self, bounds: TenantBounds | None = None) -> Tenants:
        self.tenants = Tenants(self.start, on_end=self.counted.append, bounds=bounds)
        return self.tenants

    async def start(self, worker: str) -> FakeProcess:
        if self.hold is not None:
            await self.hold.wait()
        if self.fails is not None:
            raise self.fails
        process = FakeProcess(worker, len(self.started))
        self.started.append(process)
        return process

    async def use(self, worker: str) -> int:
        async with self.tenants.process(worker) as process:
            return process.pid


@pytest.fixture
async def house(caplog: pytest.LogCaptureFixture) -> AsyncIterator[House]:
    caplog.set_level(logging.CRITICAL + 1)
    made = House()
    yield made
    await made.tenants.aclose()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_worker_keeps_its_process(house: House) -> None:
    pids = [await house.use("a"), await house.use("b"), await house.use("a")]

    assert pids == [0, 1, 0]


async def test_requests_that_come_together_share_one_start(house: House) -> None:
    house.hold = asyncio.Event()
    uses = [asyncio.create_task(house.use("a")) for _ in range(3)]
    await settle()
    uses[0].cancel()  # the one that began it leaves
    await settle()
    house.hold.set()

    assert [await use for use in uses[1:]] == [0, 0]
    assert len(house.started) == 1


async def test_a_dead_process_is_replaced(house: House) -> None:
    await house.use("a")
    house.started[0].ended.set()
    await settle()

    assert await house.use("a") == 1
    assert house.counted == [{"workers": {"a": {"requests": 1}}}]


async def test_a_process_that_keeps_dying_is_not_waited_for(house: House) -> None:
    house.fails = HostLost("It does not start.")
    for _ in range(5):
        with pytest.raises(HostLost):
            await house.use("a")

    with pytest.raises(WorkerUnavailable, match="started again in a moment"):
        await house.use("a")
    house.fails = None

    assert await house.use("b") == 0  # and others are not held up


async def test_the_idle_one_that_was_used_longest_ago_makes_room(house: House) -> None:
    house.with_bounds(TenantBounds(processes=2))
    for worker in ("a", "b", "a"):
        await house.use(worker)

    await house.use("c")

    assert sorted(house.tenants.live) == ["a", "c"]
    assert house.started[1].ended.is_set()


async def test_a_busy_process_is_never_ended_for_another(house: House) -> None:
    house.with_bounds(TenantBounds(processes=1))

    async with house.tenants.process("a"):
        with pytest.raises(WorkerUnavailable, match="1 host processes are busy; the limit is 1"):
            await house.use("b")

    assert await house.use("b") == 1


async def test_an_idle_process_ends(house: House) -> None:
    house.with_bounds(TenantBounds(idle_seconds=0, look_every_seconds=0.001))
    await house.use("a")
    async with house.tenants.process("b"):
        looking = asyncio.create_task(house.tenants.look_after())
        await asyncio.wait_for(house.started[0].ended.wait(), 5)
        looking.cancel()

        assert list(house.tenants.live) == ["b"]
        assert house.started[0].graces_seconds[0] == TenantBounds().grace_seconds


async def test_a_process_that_does_not_answer_is_ended(house: House) -> None:
    house.with_bounds(TenantBounds(look_every_seconds=0.001))
    await house.use("a")
    house.started[0].silent = True
    looking = asyncio.create_task(house.tenants.look_after())

    await asyncio.wait_for(house.started[0].ended.wait(), 5)
    looking.cancel()

    assert await house.use("a") == 1


async def test_a_change_is_told_to_the_process_that_runs(house: House) -> None:
    await house.tenants.refresh("a")  # nobody to tell
    await house.use("a")

    await house.tenants.refresh("a")

    assert house.started[0].calls == ["refresh"]


async def test_a_change_during_a_start_is_told_after_it(house: House) -> None:
    house.hold = asyncio.Event()
    using = asyncio.create_task(house.use("a"))
    await settle()
    telling = asyncio.create_task(house.tenants.refresh("a"))
    await settle()
    house.hold.set()
    await asyncio.gather(using, telling)

    assert house.started[0].calls == ["refresh"]


async def test_a_process_that_cannot_be_told_is_ended(house: House) -> None:
    await house.use("a")
    house.started[0].silent = True

    await house.tenants.refresh("a")

    assert house.started[0].ended.is_set()
    assert await house.use("a") == 1


async def test_closing_ends_them_all_with_grace(house: House) -> None:
    await house.use("a")
    await house.use("b")

    await house.tenants.aclose()

    assert [process.ended.is_set() for process in house.started] == [True, True]
    assert {process.graces_seconds[0] for process in house.started} == {20}
    with pytest.raises(WorkerUnavailable):
        await house.use("c")
