"""What the server tests share: workers that are functions, and a client that sends raw bytes."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from belem.isolates import Event, Reply
from belem.runtime.server import (
    Dispatch,
    Explain,
    RequestEvent,
    RequestLimits,
    Route,
    bind,
    serving,
)

Handler = Callable[[Event], Awaitable[Reply]]
Body = bytes | AsyncIterator[bytes] | None


@dataclass
class FunctionTarget:
    """A worker whose handler is a Python function."""

    handler: Handler
    name: str = "function"
    version: str = "version-1"
    events: list[Event] = field(default_factory=list[Event])
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def dispatch(self, event: Event) -> Reply:
        self.events.append(event)
        self.arrived.set()
        return await self.handler(event)

    def acquire(self) -> None:
        """Have no isolate: every request goes the long way."""


@dataclass
class Site:
    """A served target: where it is, and what was reported."""

    port: int
    target: FunctionTarget
    requests: list[RequestEvent]
    reported: asyncio.Event

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def next_request(self) -> RequestEvent:
        """Return the first report, waiting for it."""
        async with asyncio.timeout(10):
            await self.reported.wait()
        return self.requests[0]


def reply(head: str, body: Body = None, closed: asyncio.Event | None = None) -> Reply:
    """Make an answered reply; `closed` is set when the server closes it."""
    made = Reply(
        1,
        lambda _: None,
        lambda _: closed.set() if closed is not None else None,
        0,
    )
    made.head = head
    made.body = body
    return made


def answering(head: str, body: Body = None) -> Handler:
    """Return a handler that always answers the same."""

    async def handler(_: Event) -> Reply:
        return reply(head, body)

    return handler


@contextlib.asynccontextmanager
async def site(
    handler: Handler,
    *,
    explain: Explain | None = None,
    limits: RequestLimits | None = None,
    prefix: bytes = b"",
    drain_seconds: float = 1,
) -> AsyncGenerator[Site, None]:
    """Serve a handler on a loopback port."""
    target = FunctionTarget(handler)
    requests: list[RequestEvent] = []
    reported = asyncio.Event()

    def on_request(event: RequestEvent) -> None:
        requests.append(event)
        reported.set()

    def route(host: str, path: bytes) -> Route | None:
        return None if host.startswith("nobody.") else Route(target, prefix)

    dispatch = Dispatch(route, on_request=on_request, explain=explain, limits=limits)
    listener = bind("127.0.0.1", 0)
    async with serving(dispatch, listener, drain_seconds=drain_seconds):
        yield Site(listener.port, target, requests, reported)


async def exchange(port: int, data: bytes) -> bytes:
    """Send raw bytes, half-close nothing, and return what comes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()
