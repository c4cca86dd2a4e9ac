"""Which addresses a worker may connect to, decided when the connection is made.

A check of the URL alone would be worth nothing: a name can resolve to a public address when it is
looked at and to a private one when it is used. So the name is resolved here, the addresses are
judged, and the connection is made to one of those very addresses. Redirects and reused connections
need no further care, since all of them were made here.
"""

import asyncio
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final, cast

import httpcore

__all__ = ["AddressRefused", "GuardedBackend", "is_public"]

# The one block that is given out to the internet.
_IPV6_INTERNET: Final = IPv6Network("2000::/3")
# Addresses of the IPv4 internet inside IPv6 (RFC 6052): what counts is the address they carry.
_NAT64: Final = IPv6Network("64:ff9b::/96")


class AddressRefused(httpcore.ConnectError):
    """Every address of the host is one that workers may not reach."""


def is_public(address: str) -> bool:
    """Tell whether an address is on the internet, and not on this machine or its networks."""
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        carried = _carried(ip)
        if carried is None and ip not in _IPV6_INTERNET:
            return False  # translated, site-local or reserved, whatever this Python knows of it
        ip = carried or ip
    return ip.is_global and not ip.is_multicast


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Make TCP connections for httpcore, to allowed addresses only."""

    def __init__(
        self, *, allow_private: bool, sockets: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._allow_private = allow_private
        # Type checkers see the stand-in that httpcore defines where anyio is not installed.
        self._sockets = sockets or cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 # httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve the host and connect to the first of its allowed addresses that answers."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._resolve(host, port)
                return await self._connect_first(addresses, port, socket_options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"{host} port {port} did not answer in time") from error

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 # httpcore's signature
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: no URL leads to a Unix socket."""
        raise AddressRefused("Unix sockets are not for workers")

    async def sleep(self, seconds: float) -> None:
        """Wait, for httpcore's own retries."""
        await asyncio.sleep(seconds)

    async def _resolve(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # a label may be impossible to encode
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from error
        # A dict keeps the resolver's order without repeats.
        addresses = list(dict.fromkeys(str(address[4][0]) for address in found))
        allowed = [address for address in addresses if self._allow_private or is_public(address)]
        if not allowed:
            raise AddressRefused(f"{host} is not a public address")
        return allowed

    async def _connect_first(
        self,
        addresses: list[str],
        port: int,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None,
    ) -> httpcore.AsyncNetworkStream:
        for address in addresses[:-1]:
            try:
                return await self._sockets.connect_tcp(address, port, socket_options=socket_options)
            except httpcore.ConnectError:
                continue
        return await self._sockets.connect_tcp(addresses[-1], port, socket_options=socket_options)


def _carried(ip: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address stands for, if it does."""
    if ip in _NAT64:
        return IPv4Address(ip.packed[-4:])
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
