"""Hostile bytes on the socket: one message is never two, and nothing grows without bound."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from belem.isolates import Event, Reply
from belem.runtime.server.failures import Outcome
from belem.runtime.server.requests import RequestLimits
from tests.runtime.server.wire import answering, exchange, reply, site

OK = answering("200 OK", b"fine")


def message(*lines: str, body: str = "") -> bytes:
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1")


@pytest.mark.parametrize(
    "data",
    [
        message("POST / HTTP/1.1", "Host: a", "Content-Length: 3", "Transfer-Encoding: chunked", body="0\r\n\r\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n"),  # noqa: E501
        message("POST / HTTP/1.1", "Host: a", "Content-Length: 3", "Content-Length: 4", body="abc"),
        message("POST / HTTP/1.1", "Host: a", "Content-Length: +3", body="abc"),
        message("POST / HTTP/1.1", "Host: a", "Content-Length: 3, 3", body="abc"),
        message("POST / HTTP/1.1", "Host: a", "Content-Length: -1", body="abc"),
        message("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: xchunked", body="3\r\nabc\r\n0\r\n\r\n"),  # noqa: E501
        message("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked, identity", body="3\r\nabc\r\n0\r\n\r\n"),  # noqa: E501
        message("POST / HTTP/1.1", "Host: a", "Transfer-Encoding : chunked", body="0\r\n\r\n"),
        message("GET / HTTP/1.1", "Host: a", "Host: b"),
        message("GET / HTTP/1.1"),
        message("GET / HTTP/1.1", "Host: a/@b"),
        message("GET / HTTP/1.1", "Host: a", " folded: x"),
        message("GET / HTTP/1.1", "Host: a", "X: a\x00b"),
        message("GET / HTTP/1.1", "Host: a", "X Y: b"),
        message("GET /\x00 HTTP/1.1", "Host: a"),
        message("GET /a b HTTP/1.1", "Host: a"),
        message("CONNECT a:443 HTTP/1.1", "Host: a"),
        message("TRACE / HTTP/1.1", "Host: a"),
        message("OPTIONS * HTTP/1.1", "Host: a"),
        message("GET / HTTP/9.9", "Host: a"),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"nonsense\r\n\r\n",
    ],
)  # fmt: skip
async def test_a_message_that_could_be_read_two_ways_is_refused_and_ends_the_connection(
    data: bytes,
) -> None:
    async with site(OK) as at:
        answer = await exchange(at.port, data)

        assert answer.startswith(b"HTTP/1.1 4")
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"fine" not in answer
        assert not at.target.events


async def test_an_absolute_target_keeps_to_the_host_header() -> None:
    async with site(OK) as at:
        await exchange(
            at.port, message("GET http://evil.example/x HTTP/1.1", "Host: a", "Connection: close")
        )

        assert at.target.events[0].head.startswith("GET http://a/x\n")


async def test_a_url_over_the_limit_is_414() -> None:
    async with site(OK) as at:
        answer = await exchange(at.port, message(f"GET /{'a' * 20_000} HTTP/1.1", "Host: a"))

    assert answer.startswith(b"HTTP/1.1 414 ")


async def test_headers_over_the_limit_are_431() -> None:
    lines = [f"X-{number}: {'y' * 1000}" for number in range(140)]
    async with site(OK) as at:
        answer = await exchange(at.port, message("GET / HTTP/1.1", "Host: a", *lines))

    assert answer.startswith(b"HTTP/1.1 431 ")


async def test_a_head_without_end_is_cut_off() -> None:
    async with site(OK) as at:
        _, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
        sent = 0
        try:
            async with asyncio.timeout(10):
                while sent < 64 << 20:
                    writer.write(b"y" * 65536)
                    await writer.drain()
                    sent += 65536
        except ConnectionError:
            pass
        writer.close()

        assert sent < 64 << 20
        assert not at.target.events


async def test_a_length_over_the_limit_is_413_before_the_body() -> None:
    async with site(OK) as at:
        answer = await exchange(
            at.port,
            message(
                "POST / HTTP/1.1", "Host: a", "Content-Length: 104857601", "Expect: 100-continue"
            ),
        )

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"100 Continue" not in answer


async def test_expect_is_answered_when_the_worker_takes_the_body() -> None:
    async with site(OK) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(
            message("POST / HTTP/1.1", "Host: a", "Content-Length: 3", "Expect: 100-continue")
        )
        interim = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"abc")
        final = await reader.readuntil(b"fine")
        writer.close()

    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert final.startswith(b"HTTP/1.1 200 OK")
    assert at.target.events[0].body == b"abc"


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with site(lambda event: _path(event)) as at:
        data = message("GET /1 HTTP/1.1", "Host: a") + message("GET /2 HTTP/1.1", "Host: a")
        answer = await exchange(
            at.port, data + message("GET /3 HTTP/1.1", "Host: a", "Connection: close")
        )

    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.index(b"<1>") < answer.index(b"<2>") < answer.index(b"<3>")


async def _path(event: Event) -> Reply:
    return reply("200 OK", f"<{event.head.split(chr(10))[0][-1]}>".encode())


async def test_a_pipeline_without_end_is_cut_off() -> None:
    async def handler(_: Event) -> Reply:
        await asyncio.sleep(60)
        return reply("200 OK")

    async with site(handler) as at:
        await exchange(at.port, message("GET / HTTP/1.1", "Host: a") * 1000)

        assert len(at.target.events) == 1


async def test_leaving_a_pipeline_ends_the_request_at_its_head() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.sleep(60)

    async def handler(_: Event) -> Reply:
        return reply("200 OK", endless(), closed)

    async with site(handler) as at:
        reader, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(message("GET /1 HTTP/1.1", "Host: a") + message("GET /2 HTTP/1.1", "Host: a"))
        await reader.readuntil(b"first")
        writer.close()
        async with asyncio.timeout(10):
            await closed.wait()


async def test_an_upgrade_is_answered_as_a_plain_request_and_ends_the_connection() -> None:
    async with site(OK) as at:
        answer = await exchange(
            at.port,
            message("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket"),
        )

    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert b"connection: close" in answer


async def test_bytes_after_a_refused_body_are_not_a_request() -> None:
    body = "GET /evil HTTP/1.1\r\nHost: a\r\n\r\n"
    async with site(OK) as at:
        answer = await exchange(
            at.port,
            message("POST / HTTP/1.1", "Host: a b", f"Content-Length: {len(body)}", body=body),
        )

        assert answer.startswith(b"HTTP/1.1 400 ")
        assert not at.target.events


async def test_trailers_are_no_headers_and_do_not_grow_without_bound() -> None:
    chunked = message("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", body="0\r\n")
    async with site(OK) as at:
        answer = await exchange(
            at.port,
            chunked
            + b"Host: b\r\nX-Evil: 1\r\n\r\n"
            + message("GET /next HTTP/1.1", "Host: a", "Connection: close"),
        )

        assert answer.count(b"HTTP/1.1 200") == 2
        assert "x-evil" not in at.target.events[0].head

        _, writer = await asyncio.open_connection("127.0.0.1", at.port)
        writer.write(chunked)
        async with asyncio.timeout(10):
            with pytest.raises(ConnectionError):
                await _send_for_ever(writer, b"X-Long: " + b"v" * 60_000 + b"\r\n")
        writer.close()


async def _send_for_ever(writer: asyncio.StreamWriter, line: bytes) -> None:
    while True:
        writer.write(line)
        await writer.drain()


async def test_a_client_that_does_not_read_a_whole_body_is_let_go() -> None:
    limits = RequestLimits(write_idle_seconds=0.1)
    async with site(answering("200 OK", bytes(64 << 20)), limits=limits) as at:
        _, writer = await asyncio.open_connection("127.0.0.1", at.port, limit=1024)
        writer.write(message("GET / HTTP/1.1", "Host: a"))

        assert (await at.next_request()).outcome is Outcome.CANCELED
        writer.transport.abort()
