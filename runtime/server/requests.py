"""From an ASGI scope to the head of a fetch event: what is checked, dropped and added."""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from belem.runtime.server.errors import (
    BadRequest,
    BodyTooLarge,
    HeadersTooLarge,
    MethodNotAllowed,
    UrlTooLong,
)

__all__ = ["BodyPlan", "RequestLimits", "event_head", "plan_body", "ray_id", "request_host"]

Headers = Iterable[tuple[bytes, bytes]]
# ASGI scopes are untyped dictionaries; every value that is read from one is checked where it is
# read.
Scope = Mapping[str, Any]

# A name, an IPv4 address or a bracketed IPv6 address, and perhaps a port. Anything else could
# change the meaning of the URL that is built from it ("good.example/@evil").
_HOST: Final = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
_UNSAFE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")

# Headers about this connection, and those that only the host may say.
_DROPPED: Final = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
        b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect",
        b"http2-settings",
        b"cf-connecting-ip", b"cf-ray", b"x-forwarded-prefix", b"x-forwarded-proto", b"x-real-ip",
    }
)  # fmt: skip
_REFUSED_METHODS: Final = frozenset({"CONNECT", "TRACE", "TRACK"})
_BODILESS_METHODS: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Workers' limits on one request, and up to what size a body is read whole."""

    url_bytes: int = 16 * 1024
    header_bytes: int = 128 * 1024
    body_bytes: int = 100 * 1024 * 1024
    whole_body_bytes: int = 64 * 1024
    body_idle_seconds: float = 60.0
    write_idle_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class BodyPlan:
    """How the body of a request is read: not at all, whole, or as a stream."""

    kind: str  # "none", "whole" or "stream"
    length: int | None = None


def ray_id() -> str:
    """Return a new request id: sixteen hex digits to find in a log; not a secret."""
    return f"{random.getrandbits(64):016x}"


def request_host(scope: Scope) -> str:
    """Return the checked Host header, with its port."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if len(hosts) != 1:
        raise BadRequest(f"The request has {len(hosts)} Host headers; it must have exactly one.")
    if _HOST.fullmatch(hosts[0]) is None:
        raise BadRequest("The Host header is not a valid host name.")
    host: bytes = hosts[0]
    return host.decode("ascii").lower()


def event_head(scope: Scope, host: str, *, prefix: bytes, ray: str, limits: RequestLimits) -> str:
    """Return "METHOD URL\\nname:value\\n…"; `prefix` is the part of the path that routed here."""
    method: str = scope["method"]
    if method in _REFUSED_METHODS:
        raise MethodNotAllowed(f"The method {method} is not allowed.")
    path: bytes = scope["raw_path"][len(prefix) :] or b"/"
    query: bytes = scope["query_string"]
    if len(path) + len(query) > limits.url_bytes:
        raise UrlTooLong(
            f"The URL is {len(path) + len(query)} bytes; the limit is {limits.url_bytes}."
        )
    if not path.startswith(b"/"):
        raise BadRequest("The request target must start with a slash.")
    url = b"%s://%s%s" % (scope["scheme"].encode(), host.encode(), path)
    if query:
        url += b"?" + query
    lines = [b"%s %s" % (method.encode(), url)]
    lines += _forwarded(scope["headers"], limits)
    lines += _added(scope, prefix, ray)
    head = b"\n".join(lines)
    if _UNSAFE.search(head.replace(b"\n", b"")) or head.count(b"\n") != len(lines) - 1:
        raise BadRequest("The request has control characters in its URL or headers.")
    return head.decode("latin-1")


def plan_body(scope: Scope, limits: RequestLimits) -> BodyPlan:
    """Say how to read the body; the HTTP parser has refused messages whose framing is ambiguous."""
    length: int | None = None
    chunked = False
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = int(value)
        elif name == b"transfer-encoding":
            if value.strip().lower() != b"chunked":
                raise BadRequest("The only transfer encoding that is understood is chunked.")
            chunked = True
    if length is not None and length > limits.body_bytes:
        raise BodyTooLarge(f"The body is {length} bytes; the limit is {limits.body_bytes}.")
    if scope["method"] in _BODILESS_METHODS or (length is None and not chunked):
        return BodyPlan("none")
    if length is not None and length <= limits.whole_body_bytes:
        return BodyPlan("whole", length)
    return BodyPlan("stream", length)


def _forwarded(headers: Headers, limits: RequestLimits) -> list[bytes]:
    lines: list[bytes] = []
    size_bytes = 0
    nominated: set[bytes] = set()
    for name, value in headers:
        size_bytes += len(name) + len(value) + 4
        if name in _DROPPED:
            if name == b"connection":
                nominated.update(token.strip() for token in value.lower().split(b","))
        elif name != b"x-forwarded-for":
            lines.append(b"%s:%s" % (name, value))
    if size_bytes > limits.header_bytes:
        raise HeadersTooLarge(
            f"The headers are {size_bytes} bytes; the limit is {limits.header_bytes}."
        )
    nominated -= {b"keep-alive", b"close", b"host", b"content-length", b""}
    if nominated:
        lines = [line for line in lines if line.split(b":", 1)[0] not in nominated]
    return lines


def _added(scope: Scope, prefix: bytes, ray: str) -> list[bytes]:
    client = scope.get("client")
    address = client[0].encode() if client else b"127.0.0.1"
    earlier = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    added = [
        b"cf-connecting-ip:" + address,
        b"cf-ray:" + ray.encode(),
        b"x-forwarded-for:" + b", ".join([*earlier, address]),
        b"x-forwarded-proto:" + scope["scheme"].encode(),
        b"x-real-ip:" + address,
    ]
    if prefix:
        added.append(b"x-forwarded-prefix:" + prefix)
    return added
