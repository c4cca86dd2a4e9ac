"""Clients that stop reading large replies, beside one that reads."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
import pytest

from belem.isolates import Event, Reply
from belem.runtime.server import Dispatch, Outcome, RequestEvent, Route, bind, serving
from belem.runtime.server.budget import Budget, BudgetLimits
from tests.runtime.server.wire import FunctionTarget, Handler, reply

LARGE = bytes(24 << 20)  # more than the kernel takes off our hands


async def pieces() -> AsyncIterator[bytes]:
    for start in range(0, len(LARGE), 1 << 20):
        yield LARGE[start : start + (1 << 20)]


async def whole(_: Event) -> Reply:
    return reply("200 OK", LARGE)


async def streamed(_: Event) -> Reply:
    return reply("200 OK", pieces())


@pytest.mark.parametrize(
    ("handler", "limit_bytes"), [(whole, 70 << 20), (streamed, 3 << 20)], ids=["whole", "stream"]
)
async def test_the_longest_stalled_are_cut_and_who_reads_is_served(
    handler: Handler, limit_bytes: int
) -> None:
    budget = Budget(BudgetLimits(worker_bytes=limit_bytes, stalled_seconds=0.05))
    target = FunctionTarget(handler)
    events: list[RequestEvent] = []
    reported = asyncio.Semaphore(0)

    def on_request(event: RequestEvent) -> None:
        events.append(event)
        reported.release()

    dispatch = Dispatch(lambda host, path: Route(target), on_request=on_request, budget=budget)
    listener = bind("127.0.0.1", 0)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(serving(dispatch, listener, drain_seconds=1))
        stalled: list[object] = []  # one that is forgotten ends its connection
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, limit=1)
            stalled += reader, writer
            stack.callback(writer.transport.abort)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(20):
            for _ in range(2):
                await reported.acquire()

        url = f"http://127.0.0.1:{listener.port}/"
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            response = await client.get(url)

        assert response.content == LARGE
        assert budget.cuts >= 2
        assert budget.held_bytes <= limit_bytes
        assert [event.outcome for event in events].count(Outcome.CANCELED) >= 2
