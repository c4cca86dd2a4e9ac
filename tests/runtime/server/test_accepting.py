import asyncio
import socket
from collections.abc import Iterator

import pytest

from belem.runtime.server.accepting import Acceptor


class Share:
    """A share whose lead a test decides."""

    def __init__(self) -> None:
        self.is_ahead = False
        self.connections = 0
        self.asked = 0

    def ahead(self) -> bool:
        self.asked += 1
        return self.is_ahead

    def add(self, connections: int) -> None:
        self.connections += connections


class Greeting(asyncio.Protocol):
    """Say who accepted."""

    def __init__(self, name: bytes) -> None:
        self._name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._name)
        transport.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        yield sock


def acceptor(listener: socket.socket, name: bytes, share: Share) -> Acceptor:
    # A descriptor of its own, as another process has.
    return Acceptor(listener.dup(), lambda: Greeting(name), share)


async def greeted(listener: socket.socket) -> bytes:
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


async def test_who_is_ahead_leaves_connections_to_another(listener: socket.socket) -> None:
    ahead, behind = Share(), Share()
    ahead.is_ahead = True
    first, second = acceptor(listener, b"ahead", ahead), acceptor(listener, b"behind", behind)
    first.start()
    second.start()

    greetings = {await greeted(listener) for _ in range(5)}
    await first.aclose()
    await second.aclose()

    assert greetings == {b"behind"}
    assert (ahead.connections, behind.connections) == (0, 5)


async def test_nobody_is_waited_for_long(listener: socket.socket) -> None:
    share = Share()
    share.is_ahead = True
    alone = acceptor(listener, b"alone", share)
    alone.start()

    greetings = [await greeted(listener) for _ in range(20)]
    await alone.aclose()

    assert greetings == [b"alone"] * 20
    assert share.asked < 20  # after the first, it asked no more for a while


async def test_after_its_close_nothing_is_accepted(listener: socket.socket) -> None:
    share = Share()
    made = acceptor(listener, b"open", share)
    made.start()
    await greeted(listener)

    await made.aclose()
    await made.aclose()
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(), 0.05)
    writer.close()

    assert share.connections == 1
