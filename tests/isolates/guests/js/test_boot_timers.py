"""Ops that a worker gives up on."""

import asyncio

from belem.sdk import Answer, Call
from tests.support.javascript import JavaScript


class Slow:
    """A capability whose one op ends when it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = asyncio.Event()

    async def __call__(self, call: Call, /) -> Answer:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError


async def test_an_op_is_cancelled_in_the_host_too(js: JavaScript) -> None:
    slow = Slow()
    value = await js.value(
        "return fetch('http://a/', { signal: AbortSignal.timeout(5) }).catch((e) => e.name)",
        capabilities={"fetch": slow},
    )

    assert value == "TimeoutError"
    await asyncio.wait_for(slow.cancelled.wait(), 10)
