"""Who pays for CPU time: the shares of a step, and what becomes of a request's neighbours."""

import asyncio

import pytest

from belem.isolates import CpuLimitExceeded, Event, IsolateLost
from belem.isolates.accounts import Accounts, Meter
from belem.isolates.records import pack
from belem.isolates.reply import Reply
from belem.sdk.abi import ToGuest, Type
from tests.isolates.conftest import Spawn

_BASE = 4096


class Inbox:
    """A guest's inbox in which records are finished one by one."""

    def __init__(self, *payloads: bytes) -> None:
        self.records = [pack(ToGuest.RESOLVE, 1, Type.JSON, payload) for payload in payloads]
        self.batch = b"".join(self.records)
        self.memory = bytearray(self.batch)

    def finish(self, count: int) -> None:
        for index in range(count):
            offset = sum(map(len, self.records[:index]))
            self.memory[offset : offset + 4] = bytes(4)

    def read(self, address: int, length: int) -> bytes:
        return bytes(self.memory[address - _BASE : address - _BASE + length])


def reply(id: int) -> Reply:
    return Reply(id, lambda _: None, lambda _: None, 0)


def test_a_slice_falls_on_the_records_that_were_worked_on_in_it() -> None:
    inbox = Inbox(b"1", b"[1, 2]", b"", b"4")
    meter = Meter(inbox, _BASE, inbox.batch, [7, 8, 9, 7], dict.fromkeys((7, 8, 9), 60.0))

    meter.add(1.0)
    inbox.finish(2)
    meter.add(3.0)
    meter.add(5.0)
    inbox.finish(4)
    meter.add(2.0)

    assert meter.shares == {7: 1.0 + 1.0 + 1.0, 8: 1.0, 9: 1.0 + 5.0 + 1.0}
    assert (meter.running, meter.over) == (7, None)


def test_a_meter_names_the_request_that_has_used_what_was_left_to_it() -> None:
    inbox = Inbox(b"1", b"2")
    meter = Meter(inbox, _BASE, inbox.batch, [1, 2], {1: 0.5, 2: 0.25})
    inbox.finish(1)

    assert not meter.add(0.4)
    assert meter.add(0.1)
    assert meter.over == 2


def test_what_is_left_to_a_request_counts_its_earlier_steps() -> None:
    live = {1: reply(1)}
    accounts = Accounts(lambda: live, 10.0, now=lambda: 0.0)
    assert accounts.charge_evenly([1], 9.0) == frozenset()
    inbox = Inbox(b"1", b"2")

    meter = accounts.meter(inbox, _BASE, inbox.batch, [1, 5])

    assert meter.add(2.0)
    assert meter.over == 1
    assert accounts.charge_metered(meter) == {1}
    assert live[1].usage.cpu_seconds == 11.0


def test_a_short_step_is_shared_out_by_records() -> None:
    live = {1: reply(1), 2: reply(2)}
    accounts = Accounts(lambda: live, 10.0)

    over = accounts.charge_evenly([1, 2, 1, 1], 16.0)

    assert over == {1}
    assert (live[1].usage.cpu_seconds, live[2].usage.cpu_seconds) == (12.0, 4.0)


def test_time_for_nobody_is_paid_off_by_a_tenth_of_the_time_that_passes() -> None:
    clock = [0.0]
    accounts = Accounts(dict, 1.0, now=lambda: clock[0])

    assert accounts.charge_evenly([3], 0.9) == frozenset()
    clock[0] = 5.0
    assert accounts.charge_evenly([3], 0.5) == frozenset()
    assert accounts.charge_evenly([3], 0.2) == {0}


async def test_only_who_computed_too_long_is_blamed(spawn: Spawn) -> None:
    isolate = await spawn(
        """
        export const wait = () => sleep(10_000);
        export const quick = async () => { await sleep(10_000); };
        export const loop = () => { for (;;); };
        """,
        cpu_ms=30,
    )

    results = await asyncio.gather(
        *(isolate.dispatch(Event(name)) for name in ("quick", "loop", "wait", "wait")),
        return_exceptions=True,
    )

    assert [type(result) for result in results] == [
        IsolateLost, CpuLimitExceeded, IsolateLost, IsolateLost,
    ]  # fmt: skip
    lost = results[0]
    assert isinstance(lost, IsolateLost)
    assert (lost.reason, lost.delivered) == ("cpu-limit", True)


async def test_a_request_behind_the_one_that_computes_is_tried_elsewhere(spawn: Spawn) -> None:
    isolate = await spawn("export const loop = () => { for (;;); };", cpu_ms=30)
    hog = asyncio.ensure_future(isolate.dispatch(Event("loop")))
    while not isolate.in_long_step:  # noqa: ASYNC110  # steps end, and do not tell
        await asyncio.sleep(0)

    with pytest.raises(IsolateLost) as caught:
        await isolate.dispatch(Event("loop"))

    assert not caught.value.delivered
    with pytest.raises(CpuLimitExceeded):
        await hog
    with pytest.raises(IsolateLost) as late:
        await isolate.dispatch(Event("loop"))
    assert not late.value.delivered


async def test_computing_for_requests_that_are_over_ends_the_isolate(spawn: Spawn) -> None:
    isolate = await spawn(
        """
        const burn = async () => { for (;;) { await sleep(0); for (let i = 0; i < 2e6; i++); } };
        export const leave = (head, body, id) => {
          burn();
          host.send(3, id, "left");
          host.send(8, id);
        };
        export const wait = () => sleep(10_000);
        """,
        cpu_ms=100,
    )
    waiting = asyncio.ensure_future(isolate.dispatch(Event("wait")))
    await isolate.dispatch(Event("leave"))

    with pytest.raises(IsolateLost):
        async with asyncio.timeout(30):
            await waiting

    assert isinstance(isolate.dead, CpuLimitExceeded)
