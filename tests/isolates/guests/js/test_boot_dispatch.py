"""Events in, replies out: handlers, ctx, env and the life of a request."""

import asyncio
import json

import pytest

from belem.isolates import GuestThrew, LoadError, Script
from tests.support.javascript import JavaScript, Worker

GLOBAL_SCOPE = "Disallowed operation called within global scope. Asynchronous I/O"


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

    spec = {"name": "THING", "type": "thing", "id": "7", "capability": "thing:THING"}
    assert json.loads(answer.text) == [spec, ["V", "THING"], False]


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
