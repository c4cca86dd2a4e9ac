import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from belem.bindings.aiokv import TooLarge
from belem.runtime.control.errors import ValidationFailed
from belem.runtime.server.fleet.channel import Answer, Call, Channel, Handler, open_channel
from belem.runtime.server.fleet.errors import (
    ChannelBroken,
    HostLost,
    HostSilent,
    RemoteFault,
)


class Pair:
    """Two ends of one channel; the far one answers with what a test gives it."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.raw = socket.socket()

    async def open(self, handler: Handler, *, concurrency: int = 64) -> Channel:
        ours, theirs = socket.socketpair()
        await self._stack.enter_async_context(
            open_channel(theirs, handler, concurrency=concurrency)
        )
        return await self._stack.enter_async_context(open_channel(ours, _refuse))

    async def open_raw(self) -> Channel:
        """Open one end; a test writes to the other by hand."""
        ours, self.raw = socket.socketpair()
        self._stack.callback(self.raw.close)
        return await self._stack.enter_async_context(open_channel(ours, _refuse))


async def _refuse(call: Call) -> Answer:
    raise ChannelBroken(f"{call.method} is not for this side.")


async def _echo(call: Call) -> Answer:
    return Answer({"method": call.method, **call.values}, call.payload)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        made = Pair(stack)
        stack.callback(made.raw.close)
        yield made


async def test_a_call_brings_values_and_bytes(pair: Pair) -> None:
    channel = await pair.open(_echo)

    answer = await channel.call("say", {"a": [1, "é"]}, b"\0bytes", timeout_seconds=5)

    assert answer == Answer({"method": "say", "a": [1, "é"]}, b"\0bytes")


async def test_calls_run_side_by_side_and_begin_in_order(pair: Pair) -> None:
    begun: list[str] = []
    release = asyncio.Event()

    async def handle(call: Call) -> Answer:
        begun.append(call.method)
        if call.method == "first":
            await release.wait()
        else:
            release.set()
        return Answer()

    channel = await pair.open(handle)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(channel.call("first", timeout_seconds=5))
        tasks.create_task(channel.call("second", timeout_seconds=5))

    assert begun == ["first", "second"]


@pytest.mark.parametrize("error", [ValidationFailed("Uncaught x"), TooLarge("Value is 9 bytes.")])
async def test_an_error_keeps_its_class_and_its_text(pair: Pair, error: Exception) -> None:
    async def handle(_: Call) -> Answer:
        raise error

    channel = await pair.open(handle)

    with pytest.raises(type(error)) as raised:
        await channel.call("prepare", timeout_seconds=5)

    assert str(raised.value) == str(error)


async def test_what_nobody_expected_is_logged_there_and_says_little_here(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(_: Call) -> Answer:
        raise ZeroDivisionError("of a secret")

    channel = await pair.open(handle)

    with caplog.at_level(logging.CRITICAL + 1), pytest.raises(RemoteFault) as raised:
        await channel.call("work", timeout_seconds=5)

    assert raised.value.message == "work failed: ZeroDivisionError"


async def test_a_side_that_does_not_answer_is_given_up(pair: Pair) -> None:
    async def handle(_: Call) -> Answer:
        await asyncio.Event().wait()
        return Answer()

    channel = await pair.open(handle)

    with pytest.raises(HostSilent, match=r"did not answer ping within 0\.01 seconds"):
        await channel.call("ping", timeout_seconds=0.01)


async def test_a_side_that_ends_fails_its_calls_and_later_ones(pair: Pair) -> None:
    channel = await pair.open_raw()
    calling = asyncio.create_task(channel.call("ping", timeout_seconds=5))
    await asyncio.get_running_loop().sock_recv(_unblocked(pair.raw), 1)
    pair.raw.close()

    with pytest.raises(HostLost):
        await calling
    with pytest.raises(HostLost):
        await channel.call("ping", timeout_seconds=5)


async def test_a_side_that_breaks_the_rules_is_cut_off(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    channel = await pair.open_raw()

    with caplog.at_level(logging.CRITICAL + 1):
        pair.raw.send(b"\xff" * 8)
        await asyncio.wait_for(channel.closed.wait(), 5)

    with pytest.raises(HostLost):
        await channel.call("ping", timeout_seconds=5)


async def test_an_offer_is_taken_until_nobody_reads(pair: Pair) -> None:
    channel = await pair.open_raw()
    offered = 0

    while channel.offer("line", {"text": "x" * 100_000}):
        offered += 1
        assert offered < 1000

    assert offered > 5


async def test_no_more_calls_run_at_a_time_than_there_are_places(pair: Pair) -> None:
    running = most = 0
    release = asyncio.Event()

    async def handle(_: Call) -> Answer:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            asyncio.get_running_loop().call_soon(release.set)
        await release.wait()
        running -= 1
        return Answer()

    channel = await pair.open(handle, concurrency=2)

    await asyncio.gather(*(channel.call("work", timeout_seconds=5) for _ in range(6)))

    assert most == 2


def test_values_of_the_wrong_kind_are_refused() -> None:
    call = Call("listen", {"worker": 1, "workers": ["a", 2], "name": "x"})

    assert call.text("name") == "x"
    with pytest.raises(ChannelBroken):
        call.text("worker")
    with pytest.raises(ChannelBroken):
        call.texts("workers")
    with pytest.raises(ChannelBroken):
        call.texts("name")


def _unblocked(sock: socket.socket) -> socket.socket:
    sock.setblocking(False)
    return sock
