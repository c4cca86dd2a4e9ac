"""Errors of the HTTP client as a worker sees them: one table."""

from typing import Final

import httpcore

from belem.bindings.fetch.addresses import AddressRefused
from belem.bindings.fetch.decoding import DecodingFailed
from belem.sdk.ops import Json, Rejection

__all__ = ["FOREIGN", "rejection"]

_CANNOT_LOAD: Final = "Fetch API cannot load: {url}"
_LOST: Final = "Network connection lost."
_TIMED_OUT: Final = "Network connection timed out."

# The first that fits counts. The flag says whether trying again may help.
_TABLE: Final[tuple[tuple[type[Exception], str, bool], ...]] = (
    (AddressRefused, _CANNOT_LOAD + " (the address is not public)", False),
    (httpcore.PoolTimeout, "Too many responses are open; read or cancel their bodies.", True),
    (httpcore.TimeoutException, _TIMED_OUT, True),
    (httpcore.NetworkError, _LOST, True),
    (httpcore.RemoteProtocolError, _LOST, True),
    (httpcore.LocalProtocolError, "The request is not valid HTTP.", False),
    (httpcore.ProtocolError, _LOST, True),
    (httpcore.UnsupportedProtocol, _CANNOT_LOAD, False),
    (httpcore.ProxyError, _LOST, True),
    (DecodingFailed, "Decompression failed.", False),
)
FOREIGN: Final[tuple[type[Exception], ...]] = tuple(foreign for foreign, _, _ in _TABLE)


def rejection(error: Exception, url: str) -> Rejection:
    """Return what `fetch` rejects with; the client's own words go along as `cause`."""
    for foreign, message, retryable in _TABLE:
        if isinstance(error, foreign):
            properties: dict[str, Json] = {"retryable": retryable, "cause": str(error)}
            # As in workerd: a TypeError is the caller's mistake, what the network did is an Error.
            name = "TypeError" if message.startswith(_CANNOT_LOAD) else "Error"
            return Rejection(message.format(url=url), name=name, properties=properties)
    raise error
