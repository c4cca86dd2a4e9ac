"""The direct way gives what the long way gives, and ends as it does."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator

import pytest

from belem.isolates import Isolate
from belem.runtime.server import Composer, Dispatch, LiveWorker, RequestEvent, Route, bind, serving
from belem.runtime.server.failures import Outcome
from tests.runtime.server.conftest import Build
from tests.runtime.server.wire import exchange

CASES = """
  const url = new URL(request.url);
  switch (url.pathname) {
    case "/json": return Response.json({ url: request.url, a: request.headers.get("x-a") },
      { status: 201, headers: [["set-cookie", "a=1"], ["set-cookie", "b=2"], ["x-b", "\\u00e9"]] });
    case "/empty": return new Response(null, { headers: { "x-empty": "yes" } });
    case "/text": return new Response("");
    case "/204": return new Response(null, { status: 204 });
    case "/304": return new Response(null, { status: 304 });
    case "/404": return new Response("gone", { status: 404, statusText: "Nowhere" });
    case "/299": return new Response("odd", { status: 299 });
    case "/redirect": return Response.redirect("https://example.com/", 307);
    case "/close": return new Response("x", { headers: { connection: "close", date: "never" } });
    case "/large": return new Response("y".repeat(700000));
    case "/length": return new Response("12345", { headers: { "content-length": "3" } });
    case "/throw": throw new TypeError("no");
    case "/hung": return new Promise(() => {});
    case "/ray": return new Response(request.headers.get("cf-ray"));
    case "/stream": return new Response(new ReadableStream({
      start(controller) { controller.enqueue(new Uint8Array([65, 66])); controller.close(); } }));
    case "/broken": return new Response(new ReadableStream({
      async pull(controller) { await scheduler.wait(5); controller.error(new Error("half")); } }));
    case "/wait": await scheduler.wait(10_000);
    case "/slow": await scheduler.wait(30);
    case "/loop": if (url.pathname === "/loop") for (;;);
  }
  return new Response("hello " + url.pathname);
"""


class LongWayOnly:
    """A worker that never has an isolate at hand."""

    def __init__(self, worker: LiveWorker) -> None:
        self.name = worker.name
        self.version = worker.version
        self.dispatch = worker.dispatch

    def acquire(self) -> Isolate | None:
        return None


class Served:
    def __init__(self, port: int, events: list[RequestEvent]) -> None:
        self.port = port
        self.events = events
        self.reported = asyncio.Event()
        self.logged = asyncio.Event()

    async def event(self) -> RequestEvent:
        async with asyncio.timeout(10):
            await self.reported.wait()
        return self.events[0]


@contextlib.asynccontextmanager
async def served(
    composer: Composer, build: Build, source: str = CASES, *, direct: bool = True
) -> AsyncGenerator[Served, None]:
    listener = bind("127.0.0.1", 0)
    at = Served(listener.port, [])
    revision = await build(source)
    worker = LiveWorker("hello", composer.host, revision, log=lambda _: at.logged.set())

    def on_request(event: RequestEvent) -> None:
        at.events.append(event)
        at.reported.set()

    target = worker if direct else LongWayOnly(worker)
    dispatch = Dispatch(lambda host, path: Route(target), on_request=on_request)
    async with worker, serving(dispatch, listener, drain_seconds=1):
        yield at


def get(path: str, *lines: str, method: str = "GET", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: a", *lines, "", ""]).encode()


def without_chance(answer: bytes) -> bytes:
    return re.sub(rb"\b[0-9a-f]{16}\b", b"RAY", re.sub(rb"date: [^\r]*\r\n", b"", answer))


@pytest.mark.parametrize(
    "request_bytes",
    [
        get("/", "Connection: close"),
        get("/json?x=1", "X-A: b", "Accept: */*", "Connection: close"),
        *(
            get(f"/{path}", "Connection: close")
            for path in (
                "empty", "text", "204", "304", "404", "299", "redirect", "close", "large", "length",
                "throw", "hung", "ray", "stream", "slow", "loop", "%zz", "a%20b",
            )
        ),
        *(
            get(f"/{path}", "Connection: close", method="HEAD")
            for path in ("", "json", "empty", "204", "stream", "large", "throw")
        ),
        get("/", version="1.0"),
        get("/", "Connection: keep-alive", version="1.0"),
        get("/", "Upgrade: h2c", "Connection: Upgrade, close"),
        get("/", "Connection: close, X-Hop", "X-Hop: 1", "X-Forwarded-For: 1.1.1.1"),
        get("/", "Content-Length: 3", "Connection: close") + b"abc",
        get("/", "Connection: close", method="OPTIONS"),
        get("/", "Connection: close", method="DELETE"),
        get("/", "Connection: close", method="PURGE"),
        get("/", "Connection: close", "Host: b"),
        get("/" + "a" * 17_000, "Connection: close"),
        get("/") + get("/slow") + get("/json", "Connection: close"),
        get("/slow") + get("/stream") + get("/", "Connection: close"),
    ],
)  # fmt: skip
async def test_both_ways_send_the_same_bytes(
    composer: Composer, build: Build, request_bytes: bytes
) -> None:
    async with served(composer, build, direct=False) as at:
        long = await exchange(at.port, request_bytes)
    async with served(composer, build) as at:
        direct = await exchange(at.port, request_bytes)

    assert without_chance(direct) == without_chance(long)
    assert direct.startswith(b"HTTP/1.1 ")


async def test_a_stream_that_fails_ends_the_connection(composer: Composer, build: Build) -> None:
    async with served(composer, build) as at:
        answer = await exchange(at.port, get("/broken"))

        assert b"transfer-encoding: chunked" in answer
        assert not answer.endswith(b"0\r\n\r\n")
        assert (await at.event()).outcome is Outcome.STREAM_DISCONNECTED


async def test_what_happened_is_reported(composer: Composer, build: Build) -> None:
    async with served(composer, build) as at:
        answer = await exchange(at.port, get("/a%20b?secret=1", "Connection: close"))

        event = await at.event()
        assert (event.worker, event.method, event.path) == ("hello", "GET", "/a b")
        assert (event.status, event.outcome, event.version) == (200, Outcome.OK, "1")
        assert event.reply is not None
        assert f"cf-ray: {event.ray}".encode() in answer


async def test_a_client_that_leaves_aborts_the_request(composer: Composer, build: Build) -> None:
    source = """
      console.log("here");
      const left = new Promise((resolve) => request.signal.addEventListener("abort", resolve));
      await Promise.race([left, scheduler.wait(20_000)]);
      return new Response("nobody reads this");
    """
    async with served(composer, build, source) as at:
        _, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(get("/"))
        async with asyncio.timeout(10):
            await at.logged.wait()
        writer.close()

        event = await at.event()
        assert (event.status, event.outcome) == (None, Outcome.CANCELED)
        assert event.reply is not None
        async with asyncio.timeout(10):
            await event.reply.settled()
        assert event.reply.closed


async def test_requests_that_no_guest_has_seen_go_to_another_isolate(
    composer: Composer, build: Build
) -> None:
    async with served(composer, build) as at:
        hog = asyncio.create_task(exchange(at.port, get("/loop", "Connection: close")))
        await asyncio.sleep(0)
        others = await asyncio.gather(
            *(exchange(at.port, get("/x", "Connection: close")) for _ in range(8))
        )

        assert (await hog).startswith(b"HTTP/1.1 503 ")
        assert all(b"hello /x" in answer for answer in others)
