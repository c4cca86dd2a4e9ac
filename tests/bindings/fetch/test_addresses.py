import asyncio
import socket
from typing import Any

import httpcore
import pytest

from belem.bindings.fetch.addresses import AddressRefused, GuardedBackend, is_public


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b:1::7f00:1",
        "fec0::1",
        "10.1.2.3",
        "100.64.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.168.1.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "fc00::1",
        "fd12::1",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
    ],
)
def test_addresses_of_this_machine_and_its_networks_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


class _Sockets(httpcore.AsyncMockBackend):
    """Take down the addresses connected to; those in `deaf` refuse."""

    def __init__(self, *deaf: str) -> None:
        super().__init__([])
        self._deaf = deaf
        self.connected: list[str] = []

    async def connect_tcp(
        self, host: str, *args: Any, **kwargs: Any
    ) -> httpcore.AsyncNetworkStream:
        self.connected.append(host)
        if host in self._deaf:
            raise httpcore.ConnectError("refused")
        return await super().connect_tcp(host, *args, **kwargs)


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the name server answers, look-up by look-up."""
    answers: list[list[str]] = []

    async def getaddrinfo(_: object, __: str, port: int, **___: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in answers.pop(0)]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return answers


async def test_a_connection_is_made_to_the_address_that_was_judged(
    lookups: list[list[str]],
) -> None:
    lookups += [["1.1.1.1"], ["127.0.0.1"]]
    sockets = _Sockets()

    await GuardedBackend(allow_private=False, sockets=sockets).connect_tcp("rebinding.example", 80)

    assert sockets.connected == ["1.1.1.1"]
    assert lookups == [["127.0.0.1"]]  # the second answer was never asked for


async def test_private_addresses_among_public_ones_are_left_out(lookups: list[list[str]]) -> None:
    lookups += [["10.0.0.1", "1.1.1.1", "1.0.0.1", "127.0.0.1", "1.1.1.1"]]
    sockets = _Sockets("1.1.1.1")

    await GuardedBackend(allow_private=False, sockets=sockets).connect_tcp("mixed.example", 80)

    assert sockets.connected == ["1.1.1.1", "1.0.0.1"]


async def test_a_name_with_private_addresses_only_is_refused(lookups: list[list[str]]) -> None:
    lookups += [["10.0.0.1", "::1"]]
    sockets = _Sockets()

    with pytest.raises(AddressRefused, match=r"internal\.example is not a public address"):
        await GuardedBackend(allow_private=False, sockets=sockets).connect_tcp(
            "internal.example", 80
        )

    assert sockets.connected == []


async def test_unix_sockets_are_refused() -> None:
    with pytest.raises(AddressRefused):
        await GuardedBackend(allow_private=True).connect_unix_socket("/run/docker.sock")
