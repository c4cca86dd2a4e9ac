import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from belem.isolates import Event, GuestThrew, Reply
from belem.runtime.server import Explanation, Outcome, RequestLimits
from tests.runtime.server.wire import Handler, Site, answering, exchange, reply, site


async def get(at: Site, path: str = "/", **options: object) -> httpx.Response:
    return await request(at, "GET", path, **options)


async def request(at: Site, method: str, path: str = "/", **options: object) -> httpx.Response:
    async with httpx.AsyncClient(base_url=at.url, trust_env=False, timeout=10) as client:
        return await client.request(method, path, **options)  # type: ignore[arg-type]  # as given


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def raising(error: Exception) -> Handler:
    async def handler(_: Event) -> Reply:
        raise error

    return handler


async def echo(event: Event) -> Reply:
    if event.body is None:
        return reply("200 OK", b"none")
    if isinstance(event.body, bytes):
        return reply("200 OK\nx-kind:whole", event.body)
    return reply("200 OK\nx-kind:stream", b"".join([part async for part in event.body]))


async def test_a_reply_is_sent_with_its_length_and_ray() -> None:
    async with site(answering("201 Made\nx-a:1", b"hello")) as at:
        response = await get(at)

        assert (response.status_code, response.text) == (201, "hello")
        assert response.headers["content-length"] == "5"
        assert response.headers["x-a"] == "1"
        assert f"cf-ray:{response.headers['cf-ray']}" in at.target.events[0].head
        assert "transfer-encoding" not in response.headers
        assert "server" not in response.headers


async def test_the_request_is_reported_without_its_query() -> None:
    async with site(answering("200 OK")) as at:
        await get(at, "/a/b?secret=1")

        event = await at.next_request()
    assert (event.worker, event.method, event.path, event.status) == (
        "function",
        "GET",
        "/a/b",
        200,
    )
    assert event.outcome is Outcome.OK
    assert event.duration_ms > 0


async def test_a_stream_is_sent_in_chunks_as_they_come() -> None:
    gate = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"one"
        await gate.wait()
        yield b""
        yield b"two"

    async with (
        site(lambda _: _now(reply("200 OK\ncontent-length:99", slow()))) as at,
        httpx.AsyncClient(base_url=at.url, trust_env=False) as client,
        client.stream("GET", "/") as response,
    ):
        parts = response.aiter_raw()
        first = await anext(parts)
        gate.set()
        rest = b"".join([part async for part in parts])

    assert (first, rest) == (b"one", b"two")
    assert response.headers["transfer-encoding"] == "chunked"
    assert "content-length" not in response.headers


async def _now(made: Reply) -> Reply:
    return made


async def test_several_cookies_arrive_apart() -> None:
    async with site(answering("200 OK\nset-cookie:a=1\nset-cookie:b=2")) as at:
        response = await get(at)

    assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]


async def test_head_has_the_length_and_no_body() -> None:
    async with site(answering("200 OK", b"hello")) as at:
        response = await request(at, "HEAD")

    assert response.headers["content-length"] == "5"
    assert response.content == b""


async def test_head_keeps_a_length_that_the_worker_claims() -> None:
    async with site(answering("200 OK\ncontent-length:1234")) as at:
        response = await request(at, "HEAD")

    assert response.headers["content-length"] == "1234"


async def test_head_of_a_stream_closes_the_stream() -> None:
    closed = asyncio.Event()
    async with site(lambda _: _now(reply("200 OK", chunks(b"x"), closed))) as at:
        response = await request(at, "HEAD")
        async with asyncio.timeout(10):
            await closed.wait()

    assert response.content == b""


@pytest.mark.parametrize("status", [204, 304])
async def test_a_null_body_status_has_neither_body_nor_length(status: int) -> None:
    async with site(answering(f"{status} X", b"ignored")) as at:
        response = await get(at)

    assert (response.status_code, response.content) == (status, b"")
    assert "content-length" not in response.headers
    assert "transfer-encoding" not in response.headers


async def test_205_says_that_it_is_empty() -> None:
    async with site(answering("205 Reset", b"ignored")) as at:
        response = await get(at)

    assert (response.headers["content-length"], response.content) == ("0", b"")


async def test_a_small_body_arrives_whole() -> None:
    async with site(echo) as at:
        response = await request(at, "POST", content=b"x" * 65536)

    assert response.headers["x-kind"] == "whole"
    assert response.content == b"x" * 65536


async def test_a_large_body_arrives_as_a_stream() -> None:
    data = bytes(range(256)) * 4096
    async with site(echo) as at:
        response = await request(at, "POST", content=data)

    assert response.headers["x-kind"] == "stream"
    assert response.content == data


async def test_a_chunked_body_arrives_as_a_stream() -> None:
    async with site(echo) as at:
        response = await request(at, "POST", content=chunks(b"a", b"b"))

    assert (response.headers["x-kind"], response.content) == ("stream", b"ab")


async def test_a_body_is_read_no_faster_than_the_worker_reads() -> None:
    """What is neither read nor buffered stays with the client."""
    start_reading = asyncio.Event()
    sent = 0

    async def handler(event: Event) -> Reply:
        await start_reading.wait()
        return await echo(event)

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(400):
            sent += 65536
            yield b"x" * 65536

    async with site(handler) as at:
        upload = asyncio.create_task(request(at, "POST", content=endless()))
        before = -1
        while before != sent:  # until the client is held back
            before = sent
            await asyncio.sleep(0.2)
        held = sent
        start_reading.set()
        response = await upload

    # The rest is in the buffers of the two sockets.
    assert held < 400 * 65536 / 2
    assert len(response.content) == 400 * 65536


async def test_a_stream_over_the_limit_answers_413() -> None:
    async with site(echo, limits=RequestLimits(body_bytes=100_000)) as at:
        response = await request(at, "POST", content=chunks(*[b"x" * 50_000] * 3))

        assert response.status_code == 413
        assert (await at.next_request()).outcome is Outcome.REFUSED


async def test_a_body_that_stops_coming_answers_408() -> None:
    async with site(echo, limits=RequestLimits(body_idle_seconds=0.05)) as at:
        answer = await exchange(
            at.port, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"
        )

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_an_unknown_worker_is_a_404_page() -> None:
    async with site(answering("200 OK")) as at:
        response = await get(at, headers={"host": "nobody.localhost"})

        assert response.status_code == 404
        assert response.text.startswith("There is nothing here yet")
        assert (await at.next_request()).worker is None


async def test_an_exception_is_page_1101_and_keeps_the_connection() -> None:
    async with site(raising(GuestThrew("TypeError", "secret", "at x.ts:1:1"))) as at:
        response = await get(at, headers={"accept": "text/html"})

        event = await at.next_request()
    assert response.status_code == 500
    assert "1101" in response.text
    assert event.ray in response.text
    assert "secret" not in response.text
    assert response.headers.get("connection") != "close"
    assert event.outcome is Outcome.EXCEPTION
    assert isinstance(event.error, GuestThrew)


async def test_dev_explains_what_was_thrown() -> None:
    def explain(error: GuestThrew) -> Explanation:
        return Explanation(error.name, error.text, "at worker.ts:3:1")

    async with site(raising(GuestThrew("TypeError", "no such thing")), explain=explain) as at:
        response = await get(at)

    assert "TypeError: no such thing" in response.text
    assert "at worker.ts:3:1" in response.text


@pytest.mark.parametrize(
    "head", ["99 Low", "200 OK\nx:a\r\nset-cookie:b=1", "200 OK\nbad name:x", "101 Switch"]
)
async def test_a_head_that_would_break_http_is_page_1101(head: str) -> None:
    closed = asyncio.Event()
    async with site(lambda _: _now(reply(head, b"x", closed))) as at:
        response = await get(at)

        assert closed.is_set()
    assert response.status_code == 500
    assert response.text.startswith("error code: 1101")
    assert "set-cookie" not in response.headers


async def test_a_body_that_fails_breaks_the_connection() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"start"
        raise GuestThrew("Error", "midway")

    async with site(lambda _: _now(reply("200 OK", failing()))) as at:
        with pytest.raises(httpx.RemoteProtocolError):
            await get(at)

        event = await at.next_request()
    assert event.outcome is Outcome.STREAM_DISCONNECTED
    assert event.status == 200


async def test_a_client_that_leaves_a_working_handler_cancels_it() -> None:
    cancelled = asyncio.Event()

    async def handler(_: Event) -> Reply:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return reply("200 OK")

    async with site(handler) as at:
        _, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await writer.drain()
        await at.target.arrived.wait()
        writer.close()
        async with asyncio.timeout(10):
            await cancelled.wait()

        assert (await at.next_request()).outcome is Outcome.CANCELED


async def test_a_client_that_leaves_a_stream_closes_it() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.sleep(60)

    async with site(lambda _: _now(reply("200 OK", endless(), closed))) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await reader.readuntil(b"first")
        writer.close()
        async with asyncio.timeout(10):
            await closed.wait()

        assert (await at.next_request()).outcome is Outcome.CANCELED


async def test_a_client_that_leaves_its_upload_fails_the_workers_stream() -> None:
    failed = asyncio.Event()

    async def handler(event: Event) -> Reply:
        assert isinstance(event.body, AsyncIterator)
        try:
            async for _ in event.body:
                pass
        finally:
            failed.set()
        return reply("200 OK")

    async with site(handler) as at:
        _, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        await at.target.arrived.wait()
        writer.close()
        async with asyncio.timeout(10):
            await failed.wait()

        assert (await at.next_request()).outcome is Outcome.CANCELED
