"""What a worker asks for, checked, and how a redirect changes it. Pure: nothing here touches a
socket.

A guest writes every field of a request. Whatever could end a header early, frame the body in a
second way or speak to the next hop instead of the server is refused or dropped here, before any of
it nears a connection.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import httpx

from belem.sdk.ops import Call, Json, Rejection

__all__ = ["MAX_REDIRECTS", "Body", "Headers", "Outbound", "follow", "parse"]

Body = bytes | AsyncIterator[bytes] | None
Headers = tuple[tuple[str, str], ...]
RedirectMode = Literal["follow", "manual", "error"]

MAX_REDIRECTS: Final = 20
_MAX_URL_CHARACTERS: Final = 16 * 1024
_MAX_PORT: Final = 65535
_MAX_HEADER_BYTES: Final = 128 * 1024

_REDIRECT_MODES: Final[tuple[RedirectMode, ...]] = ("follow", "manual", "error")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HOST: Final = re.compile(rb"[0-9A-Za-z._:-]+")  # names are encoded (IDNA) by now
_NOT_IN_A_VALUE: Final = re.compile(r"[\r\n\0]")
_REFUSED_METHODS: Final = frozenset({"CONNECT", "TRACE", "TRACK"})

# These belong to one connection, or say how the body is framed, which only the sender of the bytes
# may say.
_CONNECTION_HEADERS: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_BODY_HEADERS: Final = frozenset(
    {"content-encoding", "content-language", "content-location", "content-type"}
)
_ORIGIN_HEADERS: Final = frozenset({"authorization", "cookie"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """A request that may be sent as it is."""

    method: str
    url: httpx.URL
    headers: Headers
    redirect: RedirectMode
    body: Body


def parse(call: Call) -> Outbound:
    """Read a guest's request; raise the TypeError that `fetch` rejects with."""
    match call.args:
        case [Mapping() as fields]:
            pass
        case _:
            raise _refused("fetch takes one request.")
    return Outbound(
        method=_method(fields.get("method", "GET")),
        url=_url(fields.get("url")),
        headers=_headers(fields.get("headers", [])),
        redirect=_redirect(fields.get("redirect", "follow")),
        body=call.body,
    )


def follow(request: Outbound, status: int, location: str) -> Outbound:
    """Return the request that a redirect leads to, by the rules of the Fetch standard."""
    try:
        url = request.url.join(location).copy_with(fragment=None, userinfo=b"")
    except (httpx.InvalidURL, ValueError, TypeError) as error:
        raise _refused("Invalid Location header; unable to follow redirect.") from error
    url = _checked_url(url, location)
    if status != 303 and isinstance(request.body, AsyncIterator):
        raise _refused(
            "A request with a one-time-use body (it was initialized from a stream, not a buffer) "
            "encountered a redirect requiring the body to be retransmitted. To avoid this error "
            "in the future, construct this request from a buffer-like body initializer."
        )
    dropped: frozenset[str] = frozenset()
    if _origin(url) != _origin(request.url):
        dropped |= _ORIGIN_HEADERS
    method, body = request.method, request.body
    if (status in (301, 302) and method == "POST") or (
        status == 303 and method not in ("GET", "HEAD")
    ):
        method, body = "GET", None
        dropped |= _BODY_HEADERS
    headers = tuple((name, value) for name, value in request.headers if name not in dropped)
    return replace(request, method=method, url=url, headers=headers, body=body)


def _method(method: Json) -> str:
    if not isinstance(method, str) or _TOKEN.fullmatch(method) is None:
        raise _refused(f"Invalid HTTP method string: {method}")
    upper = method.upper()
    if upper in _REFUSED_METHODS:
        raise _refused(f"Invalid HTTP method string: {method}")
    return upper


def _url(url: Json) -> httpx.URL:
    if not isinstance(url, str) or len(url) > _MAX_URL_CHARACTERS:
        raise _refused(f"Invalid URL: a URL is text of at most {_MAX_URL_CHARACTERS} characters.")
    try:
        # Credentials in a URL are not sent, and must not come back as the response's URL.
        parsed = httpx.URL(url).copy_with(fragment=None, userinfo=b"")
    except (httpx.InvalidURL, ValueError) as error:
        raise _refused(f"Invalid URL: {url}") from error
    return _checked_url(parsed, url)


def _checked_url(url: httpx.URL, text: str) -> httpx.URL:
    if url.scheme not in ("http", "https"):
        raise _refused(f"Fetch API cannot load: {text}")
    if _HOST.fullmatch(url.raw_host) is None or not 0 <= (url.port or 0) <= _MAX_PORT:
        raise _refused(f"Invalid URL: {text}")
    return url


def _headers(headers: Json) -> Headers:
    if not isinstance(headers, Sequence) or isinstance(headers, str):
        raise _refused("Headers must be a list of pairs.")
    pairs = [_header(pair) for pair in headers]
    if sum(len(name) + len(value) for name, value in pairs) > _MAX_HEADER_BYTES:
        raise _refused(f"Headers are over {_MAX_HEADER_BYTES} bytes together.")
    if any(name == "upgrade" and value.lower() == "websocket" for name, value in pairs):
        raise _refused("fetch() cannot open a WebSocket here.")
    # A Connection header names further headers that are for the next hop only.
    named = {
        token.strip().lower()
        for name, value in pairs
        if name == "connection"
        for token in value.split(",")
    }
    dropped = _CONNECTION_HEADERS | named
    return tuple(pair for pair in pairs if pair[0] not in dropped)


def _header(pair: Json) -> tuple[str, str]:
    match pair:
        case [str(name), str(value)]:
            pass
        case _:
            raise _refused("Headers must be a list of pairs.")
    if _TOKEN.fullmatch(name) is None:
        raise _refused(f"Invalid header name: {name!r}")
    if _NOT_IN_A_VALUE.search(value) is not None:
        raise _refused(f"Invalid header value for {name!r}: it has a line break or a zero byte.")
    return name.lower(), value.strip(" \t")


def _redirect(mode: Json) -> RedirectMode:
    for known in _REDIRECT_MODES:
        if mode == known:
            return known
    raise _refused(f"Invalid redirect value: {mode}")


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)


def _refused(message: str) -> Rejection:
    return Rejection(message, name="TypeError")
