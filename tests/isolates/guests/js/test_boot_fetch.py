"""fetch() out of the worker, and ops with bodies, against a scripted host."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, cast

import pytest

from belem.isolates import Script
from belem.sdk import Answer, Call, Rejection
from tests.support.javascript import JavaScript

HEAD: Mapping[str, Any] = {
    "status": 200,
    "statusText": "OK",
    "headers": [["Content-Type", "text/x"], ["set-cookie", "a=1"], ["set-cookie", "b=2"]],
    "url": "http://origin.test/end",
    "redirected": True,
}


class Origin:
    """Answers every fetch, and remembers what it was asked."""

    def __init__(self, answer: Callable[[], Answer]) -> None:
        self.answer = answer
        self.requests: list[Mapping[str, Any]] = []
        self.bodies: list[bytes | None] = []

    async def __call__(self, call: Call, /) -> Answer:
        assert call.method == "fetch"
        arguments = cast("list[Mapping[str, Any]]", call.args)
        self.requests.append(arguments[0])
        body = call.body
        if isinstance(body, AsyncIterator):
            body = b"".join([chunk async for chunk in body])
        self.bodies.append(body)
        return self.answer()


def origin(body: bytes | AsyncIterator[bytes] | None = b"", **head: Any) -> Origin:
    return Origin(lambda: Answer({**HEAD, **head}, body))


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_the_response_is_what_the_host_says(js: JavaScript) -> None:
    value = await js.value(
        """const r = await fetch("http://origin.test/");
        let guard; try { r.headers.set("a", "b"); } catch (error) { guard = error.message; }
        return [r.status, r.statusText, r.ok, r.url, r.redirected, r.type,
          r.headers.get("content-type"), r.headers.getSetCookie(), guard, await r.text()];""",
        capabilities={"fetch": origin("é".encode())},
    )

    assert value == [
        200, "OK", True, "http://origin.test/end", True, "default", "text/x", ["a=1", "b=2"],
        "Can't modify immutable headers.", "é",
    ]  # fmt: skip


async def test_the_request_is_what_the_worker_says(js: JavaScript) -> None:
    host = origin()

    await js.value(
        """await fetch("http://origin.test/a b", {
          method: "put", body: "hé", redirect: "manual", headers: { "X-A": "1", cookie: "ü" },
        });
        await fetch(new Request("http://origin.test/r", { headers: { b: "2" } }));""",
        capabilities={"fetch": host},
    )

    assert host.requests == [
        {
            "method": "PUT",
            "url": "http://origin.test/a%20b",
            "headers": [
                ["content-type", "text/plain;charset=UTF-8"], ["cookie", "Ã¼"], ["x-a", "1"],
            ],
            "redirect": "manual",
        },
        {
            "method": "GET", "url": "http://origin.test/r", "headers": [["b", "2"]],
            "redirect": "follow",
        },
    ]  # fmt: skip
    assert host.bodies == ["hé".encode(), None]


async def test_bodies_stream_out_and_in(js: JavaScript) -> None:
    host = origin(pieces(b"a" * 300_000, b"b" * 300_000))

    value = await js.value(
        """const up = new ReadableStream({ start(controller) {
          for (let i = 0; i < 5; i++) controller.enqueue(new Uint8Array(100000).fill(i));
          controller.close();
        } });
        const response = await fetch("http://origin.test/", { method: "POST", body: up });
        let size = 0;
        for await (const chunk of response.body) size += chunk.byteLength;
        return size;""",
        capabilities={"fetch": host},
    )

    assert value == 600_000
    assert host.bodies == [b"".join(bytes([i]) * 100_000 for i in range(5))]


async def test_a_response_passes_through_untouched(js: JavaScript) -> None:
    source = "export default { fetch: () => fetch('http://origin.test/') }"
    host = origin(pieces(b"one", b"two"), status=203, statusText="Maybe")

    async with js.worker(source, capabilities={"fetch": host}) as worker:
        answer = await worker.fetch()

    assert (answer.status, answer.reason, answer.body) == (203, "Maybe", b"onetwo")
    assert ("set-cookie", "b=2") in answer.headers


async def test_an_incoming_request_passes_through_untouched(js: JavaScript) -> None:
    source = "export default { fetch: (request) => fetch('http://origin.test/', request) }"
    host = origin(b"ok")

    async with js.worker(source, capabilities={"fetch": host}) as worker:
        await worker.fetch(method="POST", headers=[("x-a", "1")], body=pieces(b"x" * 400_000, b"y"))

    assert host.bodies == [b"x" * 400_000 + b"y"]
    assert host.requests[0]["redirect"] == "manual"
    assert ["x-a", "1"] in host.requests[0]["headers"]


@pytest.mark.parametrize(
    ("body", "name", "message"),
    [
        ("fetch('/relative')", "TypeError", "Invalid URL: /relative"),
        ("fetch('ftp://a/')", "TypeError", "Fetch API cannot load: ftp://a/"),
        ("fetch('http://a/', { body: 'x' })", "TypeError",
         "Request with a GET or HEAD method cannot have a body."),
        ("fetch('http://a/', { signal: AbortSignal.abort() })", "AbortError",
         "The operation was aborted"),
    ],
)  # fmt: skip
async def test_what_cannot_be_fetched_rejects(
    js: JavaScript, body: str, name: str, message: str
) -> None:
    thrown = await js.thrown(f"await {body}", capabilities={"fetch": origin()})

    assert thrown == [name, message]


async def test_aborting_fails_a_body_that_is_being_read(js: JavaScript) -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            await asyncio.Event().wait()
        finally:
            closed.set()

    value = await js.value(
        """const c = new AbortController();
        const r = await fetch("http://a/", { signal: c.signal });
        const reader = r.body.getReader();
        const first = text((await reader.read()).value);
        setTimeout(() => c.abort(), 1);
        return [first, await reader.read().catch((e) => e.name)];""",
        capabilities={"fetch": origin(endless())},
    )

    assert value == ["first", "AbortError"]
    await asyncio.wait_for(closed.wait(), 10)


async def test_cancelling_a_body_stops_the_host(js: JavaScript) -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 1000
                await asyncio.sleep(0)
        finally:
            closed.set()

    value = await js.value(
        "const r = await fetch('http://a/'); await r.body.cancel(); return r.bodyUsed",
        capabilities={"fetch": origin(endless())},
    )

    assert value is True
    await asyncio.wait_for(closed.wait(), 10)


async def test_a_body_that_fails_in_the_host_rejects_its_reader(js: JavaScript) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"x"
        raise Rejection("Network connection lost.")

    thrown = await js.thrown(
        "return (await fetch('http://a/')).text()", capabilities={"fetch": origin(failing())}
    )

    assert thrown[1] == "Network connection lost."


def refuse() -> Answer:
    raise Rejection("no", name="TypeError", properties={"code": 7, "__proto__": {"x": 1}})


async def test_a_rejected_op_throws_an_error_of_that_class(js: JavaScript) -> None:
    value = await js.value(
        """return fetch("http://a/").catch((e) =>
          [e instanceof TypeError, e.message, e.code,
            Object.getPrototypeOf(e) === TypeError.prototype]);""",
        capabilities={"fetch": Origin(refuse)},
    )

    assert value == [True, "no", 7, True]


ASK = Script(
    "ask.js",
    """(() => {
      const { defineBinding, op, readAll } = globalThis.__belem;
      defineBinding("ask", (spec) => ({
        async ask(body) {
          const answer = await op(spec.name, "ask", [1], body);
          let found = answer.body;
          if (found instanceof ReadableStream) found = await readAll(found);
          return [answer.value, found === undefined ? null : new TextDecoder().decode(found)];
        },
      }));
    })();""",
)


@pytest.mark.parametrize(
    ("given", "received"),
    [
        ("undefined", None), ("'text é'", "text é".encode()), ("bytes('ab')", b"ab"),
        ("bytes('ab').buffer", b"ab"), ("new DataView(bytes('abc').buffer, 1)", b"bc"),
        ("new Response('stream').body", b"stream"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("streamed", [False, True])
async def test_bindings_send_and_get_bodies(
    js: JavaScript, given: str, received: bytes | None, streamed: bool
) -> None:
    async def echo(call: Call, /) -> Answer:
        body = call.body
        if isinstance(body, AsyncIterator):
            body = b"".join([chunk async for chunk in body])
        assert (call.method, call.args, body) == ("ask", [1], received)
        return Answer("yes", pieces(b"a", b"b") if streamed else b"ab")

    value = await js.value(
        f"return env.ASK.ask({given})",
        capabilities={"ASK": echo},
        configuration={"bindings": [{"name": "ASK", "type": "ask"}]},
        extensions=[ASK],
    )

    assert value == ["yes", "ab"]
