import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from belem.bindings.fetch import Fetch
from belem.bindings.fetch.body import ResponseBody
from belem.sdk.ops import Answer, Call, Json, Rejection
from tests.bindings.fetch.origin import Origin, Received, response, running_origin


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    async with running_origin() as origin:
        yield origin


@pytest.fixture
async def fetch() -> AsyncIterator[Fetch]:
    async with Fetch(allow_private=True, connect_timeout_seconds=5) as fetch:
        yield fetch


async def ask(
    fetch: Fetch, url: str, body: bytes | AsyncIterator[bytes] | None = None, **fields: Json
) -> Answer:
    return await fetch(Call("fetch", [{"url": url, **fields}], body))


async def read(answer: Answer) -> bytes:
    assert answer.body is not None
    assert not isinstance(answer.body, bytes)
    return b"".join([chunk async for chunk in answer.body])


def value(answer: Answer) -> Any:  # the shape differs from case to case
    return answer.value


async def parts(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_a_response_comes_with_head_and_streamed_body(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = response(
        "201 Made It", "x-a: 1", "set-cookie: a=1", "Set-Cookie: b=2", body=b"hello"
    )

    answer = await ask(fetch, origin.url("/?q=1#part"))

    assert value(answer)["status"] == 201
    assert value(answer)["statusText"] == "Made It"
    assert value(answer)["url"] == origin.url("/?q=1")
    assert value(answer)["redirected"] is False
    headers = [(name.lower(), text) for name, text in value(answer)["headers"]]
    assert [text for name, text in headers if name == "set-cookie"] == ["a=1", "b=2"]
    assert ("x-a", "1") in headers
    assert await read(answer) == b"hello"
    assert origin.received[0].target == "/?q=1"


async def test_only_the_workers_headers_and_the_framing_are_sent(
    origin: Origin, fetch: Fetch
) -> None:
    await ask(fetch, origin.url("/"), headers=[["X-Given", "1"], ["accept", "a"], ["accept", "b"]])

    assert sorted(origin.received[0].headers) == [
        ("accept", "a"),
        ("accept", "b"),
        ("accept-encoding", "gzip, deflate"),
        ("host", f"127.0.0.1:{origin.port}"),
        ("x-given", "1"),
    ]


async def test_bytes_are_sent_with_their_length(origin: Origin, fetch: Fetch) -> None:
    await ask(fetch, origin.url("/"), b"body", method="post", headers=[["content-length", "99"]])

    assert origin.received[0].method == "POST"
    assert origin.received[0].body == b"body"
    assert origin.received[0].header("content-length") == "4"


async def test_a_stream_is_sent_in_chunks(origin: Origin, fetch: Fetch) -> None:
    await ask(fetch, origin.url("/"), parts(b"one", b"two"), method="PUT")

    assert origin.received[0].body == b"onetwo"
    assert origin.received[0].header("transfer-encoding") == "chunked"
    assert origin.received[0].header("content-length") is None


async def test_a_post_without_body_says_so(origin: Origin, fetch: Fetch) -> None:
    await ask(fetch, origin.url("/"), method="POST")

    assert origin.received[0].header("content-length") == "0"


async def test_headers_of_the_connection_are_not_the_workers(origin: Origin, fetch: Fetch) -> None:
    await ask(
        fetch,
        origin.url("/"),
        headers=[
            ["Host", "internal.example"],
            ["Transfer-Encoding", "chunked"],
            ["Connection", "close, X-Hop"],
            ["X-Hop", "1"],
            ["Upgrade", "h2c"],
            ["Proxy-Authorization", "secret"],
            ["X-Kept", "1"],
        ],
    )

    names = {name for name, _ in origin.received[0].headers}
    assert names == {"host", "accept-encoding", "x-kept"}
    assert origin.received[0].header("host") == f"127.0.0.1:{origin.port}"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello " * 50_000)),
        ("gzip", gzip.compress(b"hello " * 20_000) + gzip.compress(b"hello " * 30_000)),
        ("x-gzip", gzip.compress(b"hello " * 50_000) + b"\0" * 10),
        ("deflate", zlib.compress(b"hello " * 50_000)),
        ("deflate", zlib.compress(b"hello " * 50_000, wbits=-15)),
    ],
)
async def test_encoded_bodies_are_unpacked(
    origin: Origin, fetch: Fetch, encoding: str, packed: bytes
) -> None:
    origin.replies["/"] = response("200 OK", f"Content-Encoding: {encoding}", body=packed)

    answer = await ask(fetch, origin.url("/"))

    assert await read(answer) == b"hello " * 50_000
    assert value(answer)["headers"] == []


async def test_a_bomb_unpacks_in_small_pieces(origin: Origin, fetch: Fetch) -> None:
    packed = gzip.compress(bytes(50_000_000), compresslevel=9)
    origin.replies["/"] = response("200 OK", "Content-Encoding: gzip", body=packed)

    answer = await ask(fetch, origin.url("/"))

    assert isinstance(answer.body, AsyncIterator)
    sizes = [len(chunk) async for chunk in answer.body]
    assert max(sizes) <= 64 * 1024
    assert sum(sizes) == 50_000_000


@pytest.mark.parametrize(
    "packed", [gzip.compress(b"hello")[:-3], b"not gzip at all"], ids=["cut off", "not gzip"]
)
async def test_a_body_that_does_not_unpack_fails(
    origin: Origin, fetch: Fetch, packed: bytes
) -> None:
    origin.replies["/"] = response("200 OK", "Content-Encoding: gzip", body=packed)
    answer = await ask(fetch, origin.url("/"))

    with pytest.raises(Rejection, match=r"^Decompression failed\.$"):
        await read(answer)


async def test_an_encoding_nobody_asked_for_stays(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = response("200 OK", "Content-Encoding: br", body=b"packed")

    answer = await ask(fetch, origin.url("/"), headers=[["accept-encoding", "br"]])

    assert ["Content-Encoding", "br"] in value(answer)["headers"]
    assert await read(answer) == b"packed"
    assert origin.received[0].header("accept-encoding") == "br"


@pytest.mark.parametrize(
    ("method", "status"), [("HEAD", "200 OK"), ("GET", "204 No Content"), ("GET", "304 Same")]
)
async def test_some_responses_have_no_body(
    origin: Origin, fetch: Fetch, method: str, status: str
) -> None:
    origin.replies["/"] = response(status, "content-length: 0")

    answer = await ask(fetch, origin.url("/"), method=method)

    assert answer.body is None


async def test_redirects_are_followed(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/a"] = response("302 Found", "Location: b/c?d", body=b"moved")
    origin.replies["/b/c"] = response("200 OK", body=b"here")

    answer = await ask(fetch, origin.url("/a"))

    assert await read(answer) == b"here"
    assert value(answer)["redirected"] is True
    assert value(answer)["url"] == origin.url("/b/c?d")


async def test_a_manual_redirect_is_handed_over(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = response("302 Found", "Location: /b", body=b"moved")

    answer = await ask(fetch, origin.url("/"), redirect="manual")

    assert value(answer)["status"] == 302
    assert await read(answer) == b"moved"


async def test_a_redirect_can_be_an_error(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = response("302 Found", "Location: /b")

    with pytest.raises(Rejection, match="redirect mode"):
        await ask(fetch, origin.url("/"), redirect="error")


async def test_a_redirect_without_location_is_a_response(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = response("302 Found", body=b"where?")

    assert await read(await ask(fetch, origin.url("/"))) == b"where?"


async def test_redirects_end_after_twenty(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = response("302 Found", "Location: /")

    with pytest.raises(Rejection, match=r"^Too many redirects\.$"):
        await ask(fetch, origin.url("/"))

    assert len(origin.received) == 21


async def test_another_origin_gets_no_credentials(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/a"] = response("307 Moved", f"Location: {origin.url('/b', 'localhost')}")

    await ask(
        fetch,
        origin.url("/a"),
        b"body",
        method="POST",
        headers=[["Authorization", "secret"], ["Cookie", "secret"], ["X-Kept", "1"]],
    )

    first, second = origin.received
    assert first.header("authorization") == "secret"
    assert (second.method, second.body) == ("POST", b"body")
    assert second.header("authorization") is None
    assert second.header("cookie") is None
    assert second.header("x-kept") == "1"


async def test_a_redirect_to_another_scheme_is_refused(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = response("302 Found", "Location: file:///etc/passwd")

    with pytest.raises(Rejection, match=r"^Fetch API cannot load: file:///etc/passwd$"):
        await ask(fetch, origin.url("/"))


async def test_a_refused_connection_is_lost(fetch: Fetch, unused_tcp_port: int) -> None:
    with pytest.raises(Rejection, match=r"^Network connection lost\.$") as caught:
        await ask(fetch, f"http://127.0.0.1:{unused_tcp_port}/")

    assert caught.value.name == "Error"
    assert caught.value.properties["retryable"] is True


async def test_a_name_that_does_not_resolve_is_lost(fetch: Fetch) -> None:
    with pytest.raises(Rejection, match=r"^Network connection lost\.$") as caught:
        await ask(fetch, f"http://{'x' * 64}.invalid/")

    assert "cannot be resolved" in str(caught.value.properties["cause"])


async def test_a_response_that_breaks_off_is_lost(origin: Origin, fetch: Fetch) -> None:
    async def reply(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", "content-length: 100", body=b"start"))
        writer.close()

    origin.replies["/"] = reply
    answer = await ask(fetch, origin.url("/"))

    with pytest.raises(Rejection, match=r"^Network connection lost\.$"):
        await read(answer)


async def test_what_is_not_http_is_lost(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = b"SSH-2.0-OpenSSH_9.9\r\n\r\n"

    with pytest.raises(Rejection, match=r"^Network connection lost\.$"):
        await ask(fetch, origin.url("/"))


async def test_a_silent_server_times_out(origin: Origin) -> None:
    async def reply(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", "content-length: 100", body=b"start"))

    async def nothing(_: Received, writer: asyncio.StreamWriter) -> None:
        pass

    origin.replies["/body"] = reply
    origin.replies["/head"] = nothing
    async with Fetch(allow_private=True, idle_timeout_seconds=0.05) as fetch:
        with pytest.raises(Rejection, match=r"^Network connection timed out\.$"):
            await ask(fetch, origin.url("/head"))
        answer = await ask(fetch, origin.url("/body"))
        with pytest.raises(Rejection, match=r"^Network connection timed out\.$"):
            await read(answer)


async def test_a_worker_waits_for_the_headers_of_so_many_requests_at_a_time(
    origin: Origin, fetch: Fetch
) -> None:
    arrived = asyncio.Semaphore(0)
    release = asyncio.Event()

    async def reply(_: Received, writer: asyncio.StreamWriter) -> None:
        arrived.release()
        await release.wait()
        writer.write(response("200 OK", body=b"x"))

    origin.replies["/"] = reply
    asked = [asyncio.create_task(ask(fetch, origin.url("/"))) for _ in range(70)]
    for _ in range(64):
        await arrived.acquire()
    for _ in range(20):
        await asyncio.sleep(0)
    held = len(origin.received)
    release.set()
    answers = await asyncio.gather(*asked)  # though none of the bodies is read yet

    assert held == 64
    assert [await read(answer) for answer in answers] == [b"x"] * 70


async def test_a_body_nobody_wants_gives_its_connection_back(origin: Origin) -> None:
    origin.replies["/"] = response("200 OK", body=bytes(1_000_000))
    async with Fetch(allow_private=True, idle_timeout_seconds=2) as fetch:
        for _ in range(300):  # more than may be open at once
            answer = await ask(fetch, origin.url("/"))
            assert isinstance(answer.body, ResponseBody)
            await answer.body.aclose()


async def test_connections_are_reused(origin: Origin, fetch: Fetch) -> None:
    origin.replies["/"] = response("200 OK", body=b"x")

    for _ in range(5):
        await read(await ask(fetch, origin.url("/")))

    assert origin.connections == 1


async def test_a_cancelled_request_frees_its_turn(origin: Origin, fetch: Fetch) -> None:
    arrived = asyncio.Event()

    async def nothing(_: Received, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await asyncio.Event().wait()

    origin.replies["/never"] = nothing
    origin.replies["/"] = response("200 OK", body=b"x")
    for _ in range(8):
        arrived.clear()
        asked = asyncio.create_task(ask(fetch, origin.url("/never")))
        await arrived.wait()
        asked.cancel()
        await asyncio.wait([asked])

    assert await read(await ask(fetch, origin.url("/"))) == b"x"


async def test_a_private_address_is_refused_where_it_must(origin: Origin) -> None:
    async with Fetch(allow_private=False) as fetch:
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0"]:
            with pytest.raises(Rejection, match="the address is not public"):
                await ask(fetch, origin.url("/", host))

    assert origin.connections == 0


async def test_after_closing_nothing_is_sent(origin: Origin, fetch: Fetch) -> None:
    await fetch.aclose()
    await fetch.aclose()

    with pytest.raises(Rejection, match="connection lost"):
        await ask(fetch, origin.url("/"))


async def test_closing_ends_open_bodies(origin: Origin, fetch: Fetch) -> None:
    async def reply(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(response("200 OK", "content-length: 100", body=b"start"))

    origin.replies["/"] = reply
    answer = await ask(fetch, origin.url("/"))

    await fetch.aclose()

    with pytest.raises(Rejection):
        await read(answer)


async def test_another_method_is_refused(fetch: Fetch) -> None:
    with pytest.raises(Rejection, match="connect"):
        await fetch(Call("connect", []))
