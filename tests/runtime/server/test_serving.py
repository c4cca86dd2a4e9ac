import asyncio
import socket

import httpx
import pytest

from belem.isolates import Event, Reply
from belem.runtime.server.errors import PortInUse
from belem.runtime.server.serving import bind
from tests.runtime.server.wire import answering, reply, site


def test_a_port_in_use_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        with pytest.raises(PortInUse, match=f"Port {port} on 127.0.0.1 is in use.*--port"):
            bind("127.0.0.1", port)


def test_an_address_of_another_machine_is_an_error_too() -> None:
    with pytest.raises(PortInUse, match=r"Cannot listen on 192\.0\.2\.1"):
        bind("192.0.2.1", 0)


def test_a_listener_knows_its_url() -> None:
    listener = bind("127.0.0.1", 0)

    assert listener.url == f"http://localhost:{listener.port}"
    listener.sock.close()


async def test_a_request_in_flight_is_finished_before_the_end() -> None:
    arrived = asyncio.Event()

    async def slow(_: Event) -> Reply:
        arrived.set()
        await asyncio.sleep(0.3)
        return reply("200 OK", b"done")

    async with httpx.AsyncClient(trust_env=False) as client:
        async with site(slow, drain_seconds=10) as at:
            request = asyncio.create_task(client.get(at.url))
            await arrived.wait()
        response = await request

    assert response.text == "done"


async def test_a_request_that_never_ends_does_not_keep_the_server() -> None:
    arrived = asyncio.Event()

    async def stuck(_: Event) -> Reply:
        arrived.set()
        await asyncio.sleep(600)
        return reply("200 OK")

    async with httpx.AsyncClient(trust_env=False) as client:
        async with asyncio.timeout(10), site(stuck, drain_seconds=1) as at:
            request = asyncio.create_task(client.get(at.url))
            await arrived.wait()
        with pytest.raises(httpx.HTTPError):
            (await request).raise_for_status()


async def test_an_idle_connection_does_not_keep_the_server() -> None:
    async with (
        asyncio.timeout(5),
        httpx.AsyncClient(trust_env=False) as client,
        site(answering("200 OK"), drain_seconds=60) as at,
    ):
        response = await client.get(at.url)

    assert response.status_code == 200
