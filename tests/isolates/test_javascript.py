"""The whole JavaScript guest on the host: what a worker does in one request."""

from collections.abc import AsyncIterator

import pytest

from belem.isolates import (
    Event,
    GuestHung,
    GuestThrew,
    Host,
    Isolate,
    Limits,
    LogLine,
    Program,
    Script,
)
from belem.isolates.guests.js import javascript

HEAD = "GET http://worker.test/path\nhost:worker.test\n"


async def start(host: Host, source: str, lines: list[LogLine], **limits: float) -> Isolate:
    bounds = Limits(**limits)  # type: ignore[arg-type]  # the names are checked at run time
    program = Program(main="worker.js", modules={"worker.js": source})
    image = await host.build(javascript(), program, bounds)
    return host.spawn(image, {}, bounds, lines.append)


async def test_a_worker_answers(host: Host, lines: list[LogLine]) -> None:
    isolate = await start(
        host, "export default { fetch: (r) => new Response(new URL(r.url).pathname) };", lines
    )

    reply = await isolate.dispatch(Event("fetch", HEAD))

    assert reply.head.startswith("200")
    assert reply.body == b"/path"
    await reply.settled()


async def test_twenty_megabytes_stream_through(host: Host, lines: list[LogLine]) -> None:
    isolate = await start(
        host, "export default { fetch: (r) => new Response(r.body) };", lines, memory_bytes=32 << 20
    )

    async def upload() -> AsyncIterator[bytes]:
        for number in range(320):
            yield bytes([number & 0xFF]) * (64 << 10)

    reply = await isolate.dispatch(Event("fetch", HEAD.replace("GET", "POST"), upload()))
    assert isinstance(reply.body, AsyncIterator)
    total = 0
    async for chunk in reply.body:
        total += len(chunk)
    await reply.settled()

    assert total == 20 << 20


async def test_wait_until_outlives_the_reply(host: Host, lines: list[LogLine]) -> None:
    isolate = await start(
        host,
        """
        export default { fetch(request, env, ctx) {
          ctx.waitUntil(new Promise((resolve) => setTimeout(() => {
            console.log("after"); resolve(); }, 10)));
          return new Response("now");
        } };
        """,
        lines,
    )

    reply = await isolate.dispatch(Event("fetch", HEAD))
    assert lines == []
    await reply.settled()

    assert [line.text for line in lines] == ["after"]


async def test_a_timer_left_behind_ends_with_its_request(host: Host, lines: list[LogLine]) -> None:
    isolate = await start(
        host,
        "export default { fetch() { setInterval(() => console.log('still'), 1);"
        " return new Response('x'); } };",
        lines,
    )

    reply = await isolate.dispatch(Event("fetch", HEAD))
    await reply.settled()

    assert isolate.pending_ops == 0
    again = await isolate.dispatch(Event("fetch", HEAD))
    await again.settled()
    assert not [line for line in lines if line.level == "error"]


async def test_a_handler_that_throws_or_hangs_fails_its_request(
    host: Host, lines: list[LogLine]
) -> None:
    isolate = await start(
        host,
        """
        export default { async fetch(request) {
          if (request.url.endsWith("hang")) await new Promise(() => {});
          throw new TypeError("broken");
        } };
        """,
        lines,
    )

    with pytest.raises(GuestThrew, match="TypeError: broken"):
        await isolate.dispatch(Event("fetch", HEAD))
    with pytest.raises(GuestHung):
        await isolate.dispatch(Event("fetch", "GET http://worker.test/hang\n"))


async def test_extensions_run_before_the_seal_and_workers_after(
    host: Host, lines: list[LogLine]
) -> None:
    guest = javascript([Script("seen.js", "globalThis.seen = typeof __belem;")])
    source = "export default { fetch: () => new Response(`${seen} ${typeof __belem}`) };"
    image = await host.build(guest, Program(main="w.js", modules={"w.js": source}))

    reply = await host.spawn(image, {}, Limits(), lines.append).dispatch(Event("fetch", HEAD))

    assert reply.body == b"object undefined"


async def test_two_isolates_draw_different_random_numbers(host: Host, lines: list[LogLine]) -> None:
    source = "export default { fetch: () => new Response(crypto.randomUUID() + Math.random()) };"
    first, second = await start(host, source, lines), await start(host, source, lines)

    bodies = {(await isolate.dispatch(Event("fetch", HEAD))).body for isolate in (first, second)}

    assert len(bodies) == 2
