"""Bodies of requests and replies: whole, streamed, slow, cut off and unread."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from belem.isolates import GuestThrew
from tests.support.javascript import JavaScript, read


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_whole_bodies_cross_whole(js: JavaScript) -> None:
    source = (
        "export default { fetch: async (request) => new Response((await request.text()) + '!') }"
    )

    async with js.worker(source) as worker:
        reply = await worker.dispatch(method="POST", body="grüße".encode())

    assert reply.body == "grüße!".encode()


async def test_a_body_passes_through_from_host_to_host(js: JavaScript) -> None:
    size = 700_000
    source = "export default { fetch: (request) => new Response(request.body) }"

    async with js.worker(source) as worker:
        answer = await worker.fetch(method="POST", body=chunks(b"a" * size, b"b" * size, b"c"))

    assert answer.body == b"a" * size + b"b" * size + b"c"


async def test_streams_flow_both_ways_through_a_transform(js: JavaScript) -> None:
    source = """export default { fetch(request) {
      const upper = new TransformStream({ transform(chunk, controller) {
        controller.enqueue(chunk.map((byte) => byte - 32));
      } });
      return new Response(request.body.pipeThrough(upper));
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch(method="POST", body=chunks(*[b"abc" * 1000] * 300))

    assert answer.body == b"ABC" * 300_000


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("return request.text()", "onetwo"),
        (
            "return request.clone().text().then(async (a) => a + (await request.text()))",
            "onetwo" * 2,
        ),
        (
            "const [a, b] = request.body.tee(); b.cancel(); return new Response(a).text()",
            "onetwo",
        ),
        ("return new Request(request).text()", "onetwo"),
        ("return new Request('http://x/', { method: 'PUT', body: request.body }).text()", "onetwo"),
        (
            "let s = ''; for await (const c of request.body) s += text(c) + '.'; return s",
            "one.two.",
        ),
        ("return request.formData().catch((e) => e.name)", "TypeError"),
        (
            """const reader = request.body.getReader({ mode: "byob" });
            let all = ""; let view = new Uint8Array(2);
            for (;;) {
              const { value, done } = await reader.read(view);
              if (done) return all + value.byteLength;
              all += text(value) + ".";
              view = new Uint8Array(value.buffer);
            }""",
            "on.e.tw.o.0",
        ),
        (
            """const { readable, writable } = new IdentityTransformStream();
            request.body.pipeTo(writable); return new Response(readable).text()""",
            "onetwo",
        ),
        (
            """return new Response(request.body.pipeThrough(new TextDecoderStream())
              .pipeThrough(new TextEncoderStream())).text()""",
            "onetwo",
        ),
    ],
)
async def test_a_streamed_request_body_can_be_read_in_every_way(
    js: JavaScript, read: str, expected: str
) -> None:
    async def slowly() -> AsyncIterator[bytes]:
        yield b"one"
        await asyncio.sleep(0)
        yield b"two"

    source = f"""const text = (bytes) => new TextDecoder().decode(bytes);
    const run = async (request) => {{ {read} }};
    export default {{ fetch: async (request) => new Response(await run(request)) }}"""

    async with js.worker(source) as worker:
        answer = await worker.fetch(method="POST", body=slowly())

    assert answer.text == expected


async def test_a_slow_reader_holds_back_the_sender(js: JavaScript) -> None:
    sent = 0

    async def many() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield bytes(64 * 1024)
            await asyncio.sleep(0)

    source = """export default { async fetch(request) {
      const reader = request.body.getReader();
      await reader.read();
      await scheduler.wait(50);
      return new Response("read one");
    } };"""

    async with js.worker(source) as worker:
        assert (await worker.fetch(method="POST", body=many())).text == "read one"

    assert sent <= 8  # a window of 256 KiB, and what is on its way


async def test_one_chunk_larger_than_the_window(js: JavaScript) -> None:
    source = """export default { fetch() {
      return new Response(new ReadableStream({ start(controller) {
        controller.enqueue(new Uint8Array(1_000_000).fill(7));
        controller.close();
      } }));
    } };"""

    async with js.worker(source) as worker:
        assert (await worker.fetch()).body == b"\7" * 1_000_000


async def test_bodies_too_large_for_one_record_are_streamed(js: JavaScript) -> None:
    source = "export default { fetch: () => new Response('x'.repeat(9 * 1024 * 1024)) }"

    async with js.worker(source) as worker:
        assert len((await worker.fetch()).body) == 9 * 1024 * 1024


async def test_a_fixed_length_stream_gives_a_content_length(js: JavaScript) -> None:
    source = """export default { async fetch(request, env, ctx) {
      const { readable, writable } = new FixedLengthStream(5);
      const writer = writable.getWriter();
      ctx.waitUntil(writer.write(new TextEncoder().encode("hello")).then(() => writer.close()));
      return new Response(readable);
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch()

    assert (answer.header("content-length"), answer.text) == ("5", "hello")


async def test_a_stream_that_errors_fails_the_body(js: JavaScript) -> None:
    source = """export default { fetch: () => new Response(new ReadableStream({
      start(controller) { controller.enqueue(new Uint8Array(3)); },
      pull() { throw new RangeError("no more"); },
    })) }"""

    async with js.worker(source) as worker:
        reply = await worker.dispatch()
        with pytest.raises(GuestThrew, match="no more"):
            await read(reply)
        await reply.settled()


async def test_an_unread_request_body_is_stopped_when_the_request_settles(js: JavaScript) -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 1000
                await asyncio.sleep(0)
        finally:
            closed.set()

    async with js.worker("export default { fetch: () => new Response('no thanks') }") as worker:
        answer = await worker.fetch(method="POST", body=endless())
        await asyncio.wait_for(closed.wait(), 10)

    assert answer.text == "no thanks"


async def test_a_body_read_too_late_fails(js: JavaScript) -> None:
    source = """let kept; export default { async fetch(request) {
      if (kept === undefined) { kept = request; return new Response("kept"); }
      return new Response(await kept.text().catch((error) => error.message));
    } };"""

    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    async with js.worker(source) as worker:
        await worker.fetch(method="POST", body=slow())
        answer = await worker.fetch()

    assert answer.text == "Can't read from request stream after response has been sent."
