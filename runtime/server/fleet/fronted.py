"""The server of a host process behind a front: only the front may speak to it."""

import os
import socket
import struct
import sys
from asyncio import Transport
from typing import Any, Final, cast

from belem.runtime.server.protocol import BoundedHttpProtocol

__all__ = ["CLIENT_HEADER", "FrontedProtocol"]

# No client can set it: the front drops it from what it gets.
CLIENT_HEADER: Final = b"belem-client-address"

_CREDENTIALS: Final = struct.Struct("iII")  # struct ucred: process, user, group


class FrontedProtocol(BoundedHttpProtocol):
    """Take a request's client from the front, and connections from nobody else.

    Other processes of this user may find the socket; the kernel says who connected.
    """

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Turn away whoever is not the parent process."""
        super().connection_made(transport)
        peer = _peer_pid(transport)
        if peer is not None and peer != os.getppid():
            transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take the client's address out of the headers."""
        if name.lower() == CLIENT_HEADER:
            scope = cast(dict[str, Any], self.scope)  # Any: as ASGI's scopes
            scope["client"] = (value.decode("ascii", "replace"), 0)
        else:
            super().on_header(name, value)


def _peer_pid(transport: Transport) -> int | None:
    """Return who connected, where the system tells."""
    if sys.platform != "linux":
        return None
    # A copy, because the transport's socket is no whole one.
    with socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as sock:
        option = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process: int = _CREDENTIALS.unpack(option)[0]
    return process
