"""Events in, replies out: handlers, ctx, env and the life of a request."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from belem.isolates import GuestThrew, LoadError, Script
from tests.support.javascript import JavaScript, Worker, read

GLOBAL_SCOPE = "Disallowed operation called within global scope. Asynchronous I/O"


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def thrown_by(js: JavaScript, source: str) -> GuestThrew:
    async with js.worker(source) as worker:
        with pytest.raises(GuestThrew) as caught:
            await worker.fetch()
    return caught.value


async def test_an_object_handler_gets_request_env_and_ctx(js: JavaScript) -> None:
    source = """export default { name: "me", fetch(request, env, ctx) {
      return new Response([this.name, request.method, request.url, env.GREETING,
        Object.prototype.toString.call(ctx)].join());
    } };"""

    async with js.worker(source, configuration={"vars": {"GREETING": "hi"}}) as worker:
        answer = await worker.fetch("http://worker.test/a/../b?c=d", method="PUT")

    assert answer.text == "me,PUT,http://worker.test/b?c=d,hi,[object ExecutionContext]"


async def test_a_class_handler_is_made_with_ctx_and_env(js: JavaScript) -> None:
    source = """import { WorkerEntrypoint, env } from "cloudflare:workers";
    export default class extends WorkerEntrypoint {
      async fetch(request) {
        this.ctx.waitUntil(Promise.resolve());
        return new Response(`${this.env.A} ${this.env === env}`);
      }
    }"""

    async with js.worker(source, configuration={"vars": {"A": "x"}}) as worker:
        assert (await worker.fetch()).text == "x true"


async def test_service_worker_syntax(js: JavaScript) -> None:
    source = """addEventListener("fetch", (event) => {
      event.respondWith(new Response(event.request.url + event.type));
      try { event.respondWith(new Response("")); } catch (error) { console.log(error.message); }
    });"""

    async with js.worker(source) as worker:
        assert (await worker.fetch("http://a.test/")).text == "http://a.test/fetch"
        assert "can only be called once" in worker.lines[0].text


async def test_a_reply_has_status_reason_and_headers(js: JavaScript) -> None:
    source = """export default { fetch() {
      const response = new Response("x", { status: 418, statusText: "Teapot" });
      response.headers.append("set-cookie", "a=1");
      response.headers.append("set-cookie", "b=2");
      return response;
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch()

    assert (answer.status, answer.reason) == (418, "Teapot")
    assert answer.headers == [
        ("content-type", "text/plain;charset=UTF-8"), ("set-cookie", "a=1"), ("set-cookie", "b=2"),
    ]  # fmt: skip


async def test_a_reply_without_a_body(js: JavaScript) -> None:
    async with js.worker(
        "export default { fetch: () => new Response(null, { status: 204 }) }"
    ) as worker:
        reply = await worker.dispatch()

    assert reply.head == "204 No Content\n"
    assert reply.body is None


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


@pytest.mark.parametrize(
    "handler",
    [
        "fetch() { throw new RangeError('wrong') }",
        "async fetch() { throw new RangeError('wrong') }",
        "async fetch() { await 0; throw new RangeError('wrong') }",
    ],
)
async def test_what_a_handler_throws_reaches_the_host(js: JavaScript, handler: str) -> None:
    error = await thrown_by(js, f"export default {{ {handler} }}")

    assert (error.name, error.text, error.pass_through) == (
        "RangeError", "wrong", False,
    )  # fmt: skip
    assert error.stack.startswith("RangeError: wrong\n    at fetch (")


async def test_values_that_are_no_errors_can_be_thrown(js: JavaScript) -> None:
    error = await thrown_by(js, "export default { fetch() { throw { code: 5 } } }")

    assert error.text == "{ code: 5 }"


async def test_pass_through_on_exception_is_told(js: JavaScript) -> None:
    error = await thrown_by(
        js, "export default { fetch(r, e, ctx) { ctx.passThroughOnException(); throw Error() } }"
    )

    assert error.pass_through


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (
            "export default { fetch: () => 'text' }",
            "Incorrect type for Promise: the Promise did not resolve to 'Response'.",
        ),
        ("export default {}", "Handler does not export a fetch() function."),
        ("export const a = 1", "Handler does not export a fetch() function."),
        (
            "export default { fetch: () => Response.error() }",
            "Return value from serve handler must not be an error response (like Response.error())",
        ),
        (
            "const r = new Response('x'); await r.text(); export default { fetch: () => r }",
            "Body has already been used. It can only be used once. Use tee() first if you need to "
            "read it twice.",
        ),
    ],
)
async def test_wrong_handlers_throw_as_on_workers(
    js: JavaScript, module: str, message: str
) -> None:
    assert (await thrown_by(js, module)).text == message


async def test_the_request_settles_after_wait_until(js: JavaScript) -> None:
    source = """export default { fetch(request, env, ctx) {
      ctx.waitUntil(new Promise((done) => setTimeout(done, 20)).then(() => console.log("later")));
      return new Response("now");
    } };"""

    async with js.worker(source) as worker:
        reply = await worker.dispatch()
        before = (reply.body, reply.is_settled, list(worker.lines))
        await asyncio.wait_for(reply.settled(), 10)

        assert before == (b"now", False, [])
        assert worker.lines[0].text == "later"
        assert worker.lines[0].request == reply.id


async def test_a_rejection_in_wait_until_is_logged_and_settles(js: JavaScript) -> None:
    source = """export default { fetch(request, env, ctx) {
      ctx.waitUntil(Promise.reject(new TypeError("lost")));
      return new Response("fine");
    } };"""

    async with js.worker(source) as worker:
        assert (await worker.fetch()).text == "fine"
        [(level, text)] = worker.logged

    assert level == "error"
    assert text.startswith("Uncaught (in promise) TypeError: lost")


async def test_ctx_methods_need_their_this(js: JavaScript) -> None:
    _, message = await js.thrown("const { waitUntil } = ctx; waitUntil(Promise.resolve())")

    assert message.startswith("Illegal invocation")
    assert await js.value("return [ctx.props, ctx.exports]") == [{}, {}]


async def test_a_client_that_leaves_aborts_the_request_and_its_reply(js: JavaScript) -> None:
    source = """export default { fetch(request, env, ctx) {
      request.signal.addEventListener("abort", () => console.log(request.signal.reason.name));
      return new Response(new ReadableStream({
        start(controller) { controller.enqueue(new Uint8Array(1)); },
        cancel(reason) { console.log("cancelled"); },
      }));
    } };"""

    async with js.worker(source) as worker:
        reply = await worker.dispatch()
        await reply.aclose()
        await asyncio.wait_for(reply.settled(), 10)

        assert sorted(text for _, text in worker.logged) == ["AbortError", "cancelled"]


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


@pytest.mark.parametrize(
    "statement",
    [
        "await fetch('http://a/')", "setTimeout(() => {}, 1)", "crypto.randomUUID()",
        "crypto.getRandomValues(new Uint8Array(1))", "await scheduler.wait(1)",
    ],
)  # fmt: skip
async def test_the_top_level_may_not_do_io(js: JavaScript, statement: str) -> None:
    with pytest.raises(LoadError) as caught:
        async with js.worker(f"{statement}; export default {{}}"):
            pass

    assert GLOBAL_SCOPE in str(caught.value)


async def test_bindings_are_made_by_their_type(js: JavaScript) -> None:
    extension = Script("thing.js", """(() => {
      const { defineBinding, op, readAll } = globalThis.__belem;
      defineBinding("thing", (spec) => ({ spec, ask: (body) => op(spec.name, "ask", [1], body) }));
    })();""")  # fmt: skip
    source = """export default { fetch(request, env) {
      return Response.json([env.THING.spec, Object.keys(env), "__belem" in globalThis]);
    } };"""
    configuration = {
        "bindings": [{"name": "THING", "type": "thing", "id": "7"}],
        "vars": {"V": [1]},
    }

    async with js.worker(source, configuration=configuration, extensions=[extension]) as worker:
        answer = await worker.fetch()

    assert answer.text == '[{"name":"THING","type":"thing","id":"7"},["V","THING"],false]'


async def test_an_unknown_binding_type_fails_clearly(js: JavaScript) -> None:
    configuration = {"bindings": [{"name": "Q", "type": "queue"}]}

    with pytest.raises(LoadError, match='The binding "Q" has the type "queue"'):
        async with js.worker("export default {}", configuration=configuration):
            pass


async def test_no_internals_are_left_on_the_global_object(js: JavaScript) -> None:
    names = await js.value("return Object.getOwnPropertyNames(globalThis)")

    assert [name for name in names if name.startswith("__") and name != "__cloudflareWorkers"] == []
    assert "SharedArrayBuffer" not in names


async def test_cloudflare_workers_module(js: JavaScript) -> None:
    source = """import {
      env, waitUntil, WorkerEntrypoint, DurableObject, RpcTarget,
    } from "cloudflare:workers";
    export default { fetch(request, given, ctx) {
      waitUntil(new Promise((done) => setTimeout(done, 1)).then(() => console.log("waited")));
      const object = new (class extends DurableObject {})(ctx, env);
      return Response.json([env === given, object.ctx === ctx, new RpcTarget() instanceof RpcTarget,
        "__cloudflareWorkers" in globalThis, typeof WorkerEntrypoint]);
    } };"""

    async with js.worker(source) as worker:
        answer = await worker.fetch()
        assert answer.text == '[true,true,true,false,"function"]'
        assert worker.logged == [("log", "waited")]


async def test_lines_name_the_request_that_printed_them(js: JavaScript) -> None:
    source = """console.log("top"); export default { async fetch(request) {
      const { pathname } = new URL(request.url);
      console.log(pathname, 1);
      await new Promise((done) => setTimeout(done, pathname === "/slow" ? 30 : 5));
      console.log(pathname, 2);
      await scheduler.wait(1);
      console.log(pathname, 3);
      return new Response("");
    } };"""

    async def ask(worker: Worker, path: str) -> int:
        reply = await worker.dispatch(f"http://worker.test{path}")
        await reply.settled()
        return reply.id

    async with js.worker(source) as worker:
        slow, fast = await asyncio.gather(ask(worker, "/slow"), ask(worker, "/fast"))
        found = {(line.request, line.text) for line in worker.lines}

    assert found == {
        (0, "top"), (slow, "/slow 1"), (slow, "/slow 2"), (slow, "/slow 3"),
        (fast, "/fast 1"), (fast, "/fast 2"), (fast, "/fast 3"),
    }  # fmt: skip


async def test_a_patched_prototype_cannot_reach_the_host(js: JavaScript) -> None:
    body = """
    const seen = new Set();
    for (const type of [Array, Map, Set, Promise, Function, String]) {
      for (const name of Object.getOwnPropertyNames(type.prototype)) {
        const found = Object.getOwnPropertyDescriptor(type.prototype, name);
        if (typeof found.value !== "function" || name === "constructor") continue;
        const original = found.value;
        type.prototype[name] = function (...args) {
          for (const one of [this, ...args]) if (one?.send || one?.utf8Encode) seen.add(name);
          return Reflect.apply(original, this, args);
        };
      }
    }
    const response = new Response("x", { headers: { a: "b" } });
    await response.text();
    await new Promise((done) => setTimeout(done, 1));
    console.log({ a: [1] });
    return [...seen];"""

    assert await js.value(body) == []
