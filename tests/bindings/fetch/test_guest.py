import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from belem.bindings.crypto import Crypto
from belem.bindings.fetch import Fetch
from belem.isolates import Capability, Event, Host, Limits, Program
from belem.isolates.guests.js import javascript
from tests.bindings.fetch.origin import Origin, response, running_origin

WORKER = """
export default {
  async fetch(request, env) {
    try {
      return Response.json(await (async (url) => { %s })(env.URL));
    } catch (error) {
      return Response.json([error.constructor.name, error.message]);
    }
  },
};
"""

# The body of an async function of `url`, and what it returned.
Ask = Callable[[str, str], Awaitable[Any]]


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("code") / "cache"


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with running_origin() as origin:
        yield origin


@pytest.fixture
async def ask(cache_dir: Path) -> AsyncIterator[Ask]:
    guest = javascript()
    async with Host(cache_dir) as host, Fetch(allow_private=True) as fetch, Crypto() as crypto:

        async def run(source: str, url: str) -> Any:
            program = Program(
                main="worker.js",
                modules={"worker.js": WORKER % source},
                configuration={"vars": {"URL": url}},
            )
            image = await host.build(guest, program)
            capabilities: dict[str, Capability] = {"fetch": fetch, "crypto": crypto}
            isolate = host.spawn(image, capabilities, Limits(), lambda line: None)
            reply = await isolate.dispatch(Event("fetch", "GET http://worker/"))
            body = reply.body
            if not isinstance(body, bytes):
                assert body is not None
                body = b"".join([chunk async for chunk in body])
            await isolate.aclose()
            return json.loads(body)

        yield run


async def test_a_worker_reads_head_and_body(ask: Ask, origin: Origin) -> None:
    packed = gzip.compress(b'{"a":1}')
    origin.replies["/b"] = response(
        "200 OK", "content-encoding: gzip", "set-cookie: a=1", "set-cookie: b=2", body=packed
    )
    origin.replies["/a"] = response("302 Found", "location: /b")

    value = await ask(
        """
        const { status, redirected, headers, url: at } = await fetch(url);
        const answer = await fetch(url);
        return [status, redirected, at, headers.getSetCookie(), await answer.json()];
        """,
        origin.url("/a"),
    )

    assert value == [200, True, origin.url("/b"), ["a=1", "b=2"], {"a": 1}]


async def test_bodies_stream_up_and_down(ask: Ask, origin: Origin) -> None:
    origin.replies["/"] = response("200 OK", body=b"x" * 1_000_000)

    value = await ask(
        """
        let left = 20;
        const body = new ReadableStream({
          pull(controller) {
            if (left-- === 0) controller.close();
            else controller.enqueue(new Uint8Array(50_000));
          },
        });
        const answer = await fetch(url, { method: "POST", body });
        let size = 0;
        for await (const chunk of answer.body) size += chunk.byteLength;
        return size;
        """,
        origin.url("/"),
    )

    assert value == 1_000_000
    assert origin.received[0].body == bytes(1_000_000)


async def test_a_lost_connection_is_a_type_error(ask: Ask, unused_tcp_port: int) -> None:
    value = await ask("return fetch(url);", f"http://127.0.0.1:{unused_tcp_port}/")

    assert value == ["Error", "Network connection lost."]


async def test_a_response_that_is_not_read_ends_with_its_request(ask: Ask, origin: Origin) -> None:
    origin.replies["/"] = response("200 OK", body=bytes(1_000_000))

    for _ in range(3):
        value = await ask(
            "return (await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => fetch(url)))).length;",
            origin.url("/"),
        )
        assert value == 8


async def test_digests_come_from_the_host(ask: Ask) -> None:
    value = await ask(
        """
        const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode("abc"));
        return [...new Uint8Array(bytes)].slice(0, 4);
        """,
        "",
    )

    assert bytes(value).hex() == "ba7816bf"
