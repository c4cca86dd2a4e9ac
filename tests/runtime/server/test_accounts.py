"""Who pays for what: subrequests and CPU time of requests that share an isolate."""

import asyncio

import pytest

from belem.isolates import CpuLimitExceeded, Event, Isolate, Reply
from belem.runtime.control import Binding
from belem.runtime.server import Composer, Revision
from tests.runtime.server.conftest import Build

NOTES = (Binding("NOTES", "kv_namespace"),)
READS = """
  const path = new URL(request.url).pathname;
  let read = 0;
  try {
    for (; read < Number(path.slice(1)); read++) await env.NOTES.get("a");
  } catch (error) {
    return new Response(`${read} ${error.name}: ${error.message}`);
  }
  await scheduler.wait(0);
  await crypto.subtle.digest("SHA-256", new Uint8Array(1 << 20));
  return new Response(String(read));
"""


async def spawn(composer: Composer, revision: Revision) -> Isolate:
    return composer.host.spawn(
        revision.image, revision.capabilities, limits=revision.limits, log=lambda line: None
    )


async def ask(isolate: Isolate, path: str) -> tuple[str, Reply]:
    reply = await isolate.dispatch(Event("fetch", f"GET http://a{path}"))
    assert isinstance(reply.body, bytes)
    return reply.body.decode(), reply


async def test_one_subrequest_too_many_is_an_error_to_catch(
    composer: Composer, build: Build
) -> None:
    isolate = await spawn(composer, await build(READS, bindings=NOTES, subrequests=3))

    assert (await ask(isolate, "/3"))[0] == "3"
    text, reply = await ask(isolate, "/9")
    assert text == "3 Error: Too many subrequests."
    assert reply.usage.subrequests == 4
    await isolate.aclose()


async def test_requests_in_one_step_pay_each_for_their_own(
    composer: Composer, build: Build
) -> None:
    isolate = await spawn(composer, await build(READS, bindings=NOTES, subrequests=5))

    answers = await asyncio.gather(*(ask(isolate, f"/{count}") for count in (5, 1, 6, 0, 5, 2)))

    assert [text for text, _ in answers] == [
        "5", "1", "5 Error: Too many subrequests.", "0", "5", "2",
    ]  # fmt: skip
    assert [reply.usage.subrequests for _, reply in answers] == [5, 1, 6, 0, 5, 2]
    await isolate.aclose()


async def test_cpu_time_after_a_shared_step_is_charged_to_who_used_it(
    composer: Composer, build: Build
) -> None:
    source = """
      await scheduler.wait(1);
      if (new URL(request.url).pathname === "/burn") {
        for (;;) { for (let i = 0; i < 3e5; i++); await scheduler.wait(0); }
      }
      await scheduler.wait(5000);
      return new Response("");
    """
    isolate = await spawn(composer, await build(source, cpu_ms=50))
    burning, waiting = (
        asyncio.create_task(isolate.dispatch(Event("fetch", f"GET http://a{path}")))
        for path in ("/burn", "/wait")
    )

    with pytest.raises(CpuLimitExceeded):
        async with asyncio.timeout(20):
            await burning
    waiting.cancel()
    await isolate.aclose()


async def test_ten_milliseconds_are_enough_for_a_short_request_and_end_a_long_one(
    composer: Composer, build: Build
) -> None:
    source = """
      if (new URL(request.url).pathname === "/loop") for (;;);
      return Response.json({ ok: true });
    """
    revision = await build(source, cpu_ms=10)
    isolate = await spawn(composer, revision)

    assert (await ask(isolate, "/"))[0] == '{"ok":true}'
    with pytest.raises(CpuLimitExceeded, match="the limit is 10 ms"):
        await ask(isolate, "/loop")
