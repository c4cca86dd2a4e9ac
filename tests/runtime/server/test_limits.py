"""Each limit ends in its page and outcome, its isolate alone is gone, and its worker answers on."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import httpx
import pytest

from belem.runtime.server import (
    Composer,
    Dispatch,
    LiveWorker,
    RequestEvent,
    RequestLimits,
    Route,
    bind,
    serving,
)
from tests.runtime.server.conftest import Build

CASES = """
  let free;
  const endless = () => new Promise(() => {});
  const body = (source) => new Response(new ReadableStream(source));
  const cases = {
    "/loop"() { for (;;); },
    async "/wait"() { await scheduler.wait(20_000); return new Response("late"); },
    async "/eat"() {
      const eaten = [];
      for (;;) { eaten.push(new Uint8Array(1 << 20).fill(1)); await scheduler.wait(0); }
    },
    "/hang": endless,
    async "/hang-after-a-timer"(request, ctx) {
      ctx.waitUntil(scheduler.wait(20));
      await endless();
    },
    "/stream-without-end"() {
      return body({ start(controller) { controller.enqueue(new TextEncoder().encode("a")); } });
    },
    "/stream-without-bytes"() { return body({ pull: endless }); },
    "/stream-that-pulls-nothing"() { return body({ pull() {} }); },
    async "/take"() {
      return new Response(await new Promise((resolve) => { free = resolve; }));
    },
    async "/give"(request, ctx) {
      while (free === undefined) await scheduler.wait(5);
      free("given");
      return new Response("gave");
    },
    async "/read"(request) { return new Response((await request.arrayBuffer()).byteLength); },
  };
  export default {
    fetch(request, env, ctx) {
      const handle = cases[new URL(request.url).pathname];
      return handle === undefined ? new Response("hello") : handle(request, ctx);
    },
  };
"""


class At:
    def __init__(self, client: httpx.AsyncClient, worker: LiveWorker) -> None:
        self.client = client
        self.worker = worker
        self.events: list[RequestEvent] = []

    def report(self, event: RequestEvent) -> None:
        self.events.append(event)

    async def ask(self, path: str) -> tuple[int, str]:
        """Return the status and, of a page, Workers' number."""
        response = await self.client.get(path, headers={"accept": "application/json"})
        if response.status_code == 200:
            return 200, response.text
        return response.status_code, str(response.json()["error"]["code"])

    async def in_flight(self) -> None:
        async with asyncio.timeout(10):
            while not self.worker.in_flight:  # noqa: ASYNC110  # workers count, and do not tell
                await asyncio.sleep(0.001)

    def outcomes(self) -> dict[str, str]:
        return {event.path: str(event.outcome) for event in self.events}


@contextlib.asynccontextmanager
async def at(
    composer: Composer, build: Build, limits: RequestLimits | None = None, *, cpu_ms: int = 100
) -> AsyncGenerator[At, None]:
    revision = await build(CASES, cpu_ms=cpu_ms)
    worker = LiveWorker("hello", composer.host, revision, log=lambda _: None)
    listener = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.port}"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
        served = At(client, worker)
        dispatch = Dispatch(
            lambda host, path: Route(worker), on_request=served.report, limits=limits
        )
        async with worker, serving(dispatch, listener, drain_seconds=1):
            yield served


async def test_cpu_time_ends_its_request_with_1102_and_others_with_1105(
    composer: Composer, build: Build
) -> None:
    async with at(composer, build) as site:
        waiting = asyncio.create_task(site.ask("/wait"))
        await site.in_flight()

        assert await site.ask("/loop") == (503, "1102")
        assert await waiting == (503, "1105")
        assert await site.ask("/") == (200, "hello")
        assert site.outcomes() == {"/loop": "exceededCpu", "/wait": "unknown", "/": "ok"}


async def test_memory_ends_its_request_with_1102(composer: Composer, build: Build) -> None:
    async with at(composer, build, cpu_ms=10_000) as site:
        assert await site.ask("/eat") == (503, "1102")
        assert await site.ask("/") == (200, "hello")
        assert site.outcomes()["/eat"] == "exceededMemory"


@pytest.mark.parametrize("path", ["/hang", "/hang-after-a-timer", "/take"])
async def test_what_can_never_answer_is_1101_at_once(
    composer: Composer, build: Build, path: str
) -> None:
    async with at(composer, build) as site:
        assert await site.ask(path) == (500, "1101")
        assert site.outcomes() == {path: "exception"}


@pytest.mark.parametrize(
    "path", ["/stream-without-end", "/stream-without-bytes", "/stream-that-pulls-nothing"]
)
async def test_a_body_that_can_never_end_is_broken_off_at_once(
    composer: Composer, build: Build, path: str
) -> None:
    async with at(composer, build) as site:
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked"):
            await site.client.get(path)

        assert await site.ask("/") == (200, "hello")
        assert site.outcomes()[path] == "responseStreamDisconnected"


async def test_one_request_can_answer_another(composer: Composer, build: Build) -> None:
    async with at(composer, build) as site:
        giving = asyncio.create_task(site.ask("/give"))
        await site.in_flight()  # else nobody is there who could answer
        taken = await site.ask("/take")

        assert (taken, await giving) == ((200, "given"), (200, "gave"))


async def test_sizes_are_refused_with_their_statuses(composer: Composer, build: Build) -> None:
    limits = RequestLimits(url_bytes=100, header_bytes=1000, body_bytes=70_000)

    async def stream() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield bytes(10_000)

    async with at(composer, build, limits) as site:
        long_url = await site.client.get("/" + "x" * 100)
        long_headers = await site.client.get("/", headers={"x": "y" * 1000})
        announced = await site.client.post("/read", content=bytes(70_001))
        streamed = await site.client.post("/read", content=stream())
        largest = await site.client.post("/read", content=bytes(70_000))

        assert [
            response.status_code
            for response in (long_url, long_headers, announced, streamed, largest)
        ] == [414, 431, 413, 413, 200]
        assert largest.text == "70000"
        assert await site.ask("/") == (200, "hello")


def test_the_sizes_are_those_of_workers() -> None:
    limits = RequestLimits()

    assert (limits.url_bytes, limits.header_bytes, limits.body_bytes) == (
        16 << 10, 128 << 10, 100 << 20,
    )  # fmt: skip
