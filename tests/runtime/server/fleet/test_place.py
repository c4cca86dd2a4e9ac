import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from belem.runtime.server.fleet.backoff import Backoff
from belem.runtime.server.fleet.channel import Answer
from belem.runtime.server.fleet.errors import HostLost, HostSilent
from belem.runtime.server.fleet.orders import HostSettings
from belem.runtime.server.fleet.place import Place
from belem.runtime.server.fleet.process import HostProcess
from belem.runtime.server.observability import Snapshot
from belem.sdk import Json

SETTINGS = HostSettings(
    process="0",
    port=8787,
    cache=Path("cache"),
    data=Path("data"),
    inference="unix:/nowhere",
    allow_private_fetch=False,
    access_log=False,
    log_format="text",
)


class FakeHost:
    """A host process that keeps what it was told; a test may hold or refuse an order."""

    pid = 7
    how_it_ended = "was killed by signal 9"

    def __init__(self) -> None:
        self.told: list[object] = []
        self.holds: dict[str, asyncio.Event] = {}
        self.refuses: set[str] = set()
        self.ended = asyncio.Event()
        self.drained = False

    async def call(
        self, method: str, values: Mapping[str, Json] | None = None, payload: bytes = b"",
        *, timeout_seconds: float,
    ) -> Answer:  # fmt: skip
        if self.ended.is_set():
            raise HostLost("It has ended.")
        self.told.append((method, values["worker"]) if method == "refresh" and values else method)
        if method in self.holds:
            await self.holds[method].wait()
        if method in self.refuses:
            raise HostSilent(f"It did not answer {method}.")
        if method == "begin":
            return Answer({"workers": {"hello": True, "broken": False}})
        return Answer({"workers": {"hello": {"requests": 3}}} if method == "snapshot" else {})

    def kill(self) -> None:
        self.ended.set()

    async def drain(self, *, grace_seconds: float) -> None:
        self.drained = True
        self.ended.set()

    async def aclose(self) -> None:
        self.ended.set()


class Kept:
    """A place that is being kept, the hosts that it started, and what it was left with."""

    def __init__(self) -> None:
        self.hosts: list[FakeHost] = []
        self.next: FakeHost | None = None
        self.fails = False
        self.listened: set[str] = set()
        self.ended: list[Snapshot] = []
        self.place = Place(
            SETTINGS,
            self.start,
            listened=lambda: self.listened,
            on_end=self.ended.append,
            backoff=Backoff(first_seconds=0.001),
        )
        self.keeping: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Begin to keep the place; return when its first process is live, or failed to be."""
        self.keep()
        await asyncio.wait_for(self.place.tried.wait(), 5)

    def keep(self) -> asyncio.Task[None]:
        if self.keeping is None:
            self.keeping = asyncio.create_task(self.place.keep(grace_seconds=1))
        return self.keeping

    async def start(self) -> HostProcess:
        if self.fails:
            raise HostLost("No host process can be started: no memory")
        host, self.next = self.next or FakeHost(), None
        self.hosts.append(host)
        return cast(HostProcess, host)  # it stands where a process would

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def kept(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Kept]:
    caplog.set_level(logging.CRITICAL + 1)
    made = Kept()
    yield made
    made.place.stop()
    await asyncio.wait_for(made.keep(), 5)


async def test_a_process_is_begun_and_then_takes_requests(kept: Kept) -> None:
    await kept.begin()

    assert kept.hosts[0].told == ["begin", "accept"]
    assert kept.place.workers == {"hello": True, "broken": False}


async def test_who_is_followed_is_known_before_the_first_request(kept: Kept) -> None:
    kept.listened = {"hello"}

    await kept.begin()

    assert kept.hosts[0].told == ["begin", "listen", "accept"]


async def test_what_changes_during_a_start_is_told_before_the_first_request(kept: Kept) -> None:
    host = kept.next = FakeHost()
    host.holds["begin"] = asyncio.Event()
    kept.keep()
    await kept.settle()

    await kept.place.refresh("hello")  # returns at once: nobody asks this process yet
    host.holds["begin"].set()
    await kept.begin()

    assert host.told == ["begin", ("refresh", "hello"), "accept"]


async def test_a_live_process_is_waited_for(kept: Kept) -> None:
    await kept.begin()
    host = kept.hosts[0]
    host.holds["refresh"] = asyncio.Event()

    telling = asyncio.create_task(kept.place.refresh("hello"))
    await kept.settle()
    waited = not telling.done()
    host.holds["refresh"].set()
    await telling

    assert waited


async def test_a_process_that_was_not_refreshed_is_gone_when_the_deploy_returns(
    kept: Kept,
) -> None:
    await kept.begin()
    kept.hosts[0].refuses.add("refresh")

    await kept.place.refresh("hello")

    assert kept.hosts[0].ended.is_set()


async def test_a_dead_process_is_followed_by_another_and_its_counts_stay(kept: Kept) -> None:
    await kept.begin()
    await kept.place.snapshot()

    kept.hosts[0].kill()
    while len(kept.hosts) < 2 or kept.place.host is None:  # noqa: ASYNC110  # it restarts unasked
        await asyncio.sleep(0)

    assert kept.ended == [{"workers": {"hello": {"requests": 3}}}]
    assert await kept.place.snapshot() == {"workers": {"hello": {"requests": 3}}}


async def test_a_place_that_cannot_start_goes_on_trying(kept: Kept) -> None:
    kept.fails = True
    await kept.begin()
    assert kept.place.host is None

    kept.fails = False
    await asyncio.wait_for(kept.place.live.wait(), 5)

    assert len(kept.hosts) == 1


async def test_stopping_drains_a_live_process_and_starts_no_other(kept: Kept) -> None:
    await kept.begin()

    kept.place.stop()
    await asyncio.wait_for(kept.keep(), 5)

    assert kept.hosts[0].drained
    assert len(kept.hosts) == 1


async def test_stopping_does_not_wait_for_a_start(kept: Kept) -> None:
    host = kept.next = FakeHost()
    host.holds["begin"] = asyncio.Event()
    keeping = kept.keep()
    await kept.settle()

    kept.place.stop()
    host.holds["begin"].set()  # a real call fails with its process
    await asyncio.wait_for(keeping, 5)

    assert host.ended.is_set()
    assert "accept" not in host.told
