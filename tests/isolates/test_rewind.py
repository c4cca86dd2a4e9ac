"""Isolates made fresh in place: nothing of what they were is left, or they end."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

import pytest

from belem.isolates import Capability, Event, Host, Isolate
from belem.isolates.written import WrittenPages
from belem.sdk.ops import Answer, Call
from tests.isolates.conftest import Spawn

_STATEFUL = """
  let count = 0;
  export const next = () => `${++count} ${Math.random()}`;
  export const hold = () => { globalThis.held = new Uint8Array(16 << 20).fill(7); return "held"; };
  export const wait = () => sleep(30_000);
"""
_MANY = 40  # more than it takes until the image has a memory of its own


@pytest.fixture(autouse=True)
def _told() -> None:
    if not WrittenPages().supported:
        pytest.skip("this system does not tell which pages were written")


async def _ask(isolate: Isolate, name: str = "next") -> str:
    reply = await isolate.dispatch(Event(name))
    await reply.settled()
    await asyncio.sleep(0)
    return reply.head


async def _renewable(
    host: Host,
    spawn: Spawn,
    source: str = _STATEFUL,
    capabilities: Mapping[str, Capability] | None = None,
) -> Isolate:
    """Return an isolate of an image that has a memory of its own, and is known to be rewound."""
    async with asyncio.timeout(30):
        while True:
            isolate = await spawn(source, capabilities)
            assert (await _ask(isolate)).startswith("1 ")
            if host.renew(isolate) and _has_own_memory(isolate):
                return isolate
            isolate.end()
            await asyncio.sleep(0.001)  # a thread makes that memory


def _has_own_memory(isolate: Isolate) -> bool:
    return isolate._instance.image is not isolate.image.memory  # pyright: ignore[reportPrivateUsage]


async def test_a_renewed_isolate_remembers_nothing(host: Host, spawn: Spawn) -> None:
    isolate = await _renewable(host, spawn)
    answers: list[str] = []

    for _ in range(20):
        answers.append(await _ask(isolate))
        assert (await _ask(isolate)).startswith("2 ")
        assert host.renew(isolate)

    assert all(answer.startswith("1 ") for answer in answers)
    assert len({answer.split()[1] for answer in answers}) == 20  # random state is its own
    assert host.isolates == 1


async def test_its_memory_is_that_of_a_new_one(host: Host, spawn: Spawn) -> None:
    isolate = await _renewable(host, spawn)
    for _ in range(5):
        await _ask(isolate)
    assert host.renew(isolate)
    new = await spawn(_STATEFUL)

    assert isolate.memory_bytes == new.memory_bytes
    size = new.memory_bytes
    assert isolate._instance.read(0, size) == new._instance.read(0, size)  # pyright: ignore[reportPrivateUsage]


async def test_one_that_has_grown_ends(host: Host, spawn: Spawn) -> None:
    isolate = await _renewable(host, spawn)
    await _ask(isolate, "hold")

    assert not host.renew(isolate)
    assert isolate.dead is not None


async def test_one_with_a_request_in_flight_ends(host: Host, spawn: Spawn) -> None:
    isolate = await _renewable(host, spawn)
    waiting = asyncio.ensure_future(isolate.dispatch(Event("wait")))
    await asyncio.sleep(0.01)

    assert not host.renew(isolate)
    with pytest.raises(Exception, match=r"closed|ended"):
        await waiting


async def test_one_whose_op_has_not_come_to_its_end_ends(host: Host, spawn: Spawn) -> None:
    release = asyncio.Event()

    async def stubborn(call: Call) -> Answer:
        try:
            await release.wait()
        except asyncio.CancelledError:
            await release.wait()
        return Answer("late")

    source = """
      export const next = () => "1 ";
      export const leave = () => { host.op(["stubborn", "it", []]); return "left"; };
    """
    isolate = await _renewable(host, spawn, source, {"stubborn": stubborn})
    assert await _ask(isolate, "leave") == "left"

    assert not host.renew(isolate)
    assert isolate.dead is not None
    release.set()
    await isolate.aclose()


async def test_a_system_that_misses_writes_is_not_believed(
    host: Host, spawn: Spawn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def nothing(_: WrittenPages, base: int, length: int) -> Sequence[tuple[int, int]]:
        return []

    monkeypatch.setattr(WrittenPages, "spans", nothing)
    with caplog.at_level(logging.WARNING, "belem.isolates"):
        for _ in range(_MANY):
            isolate = await spawn(_STATEFUL)
            assert (await _ask(isolate)).startswith("1 ")
            assert not host.renew(isolate)

    assert "rewinding_impossible" in caplog.text
