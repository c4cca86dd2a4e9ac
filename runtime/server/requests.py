"""From an ASGI scope to the head of a fetch event: what is checked, dropped and added."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn

from belem.runtime.server.errors import (
    BadRequest,
    BodyTooLarge,
    HeadersTooLarge,
    MethodNotAllowed,
    UrlTooLong,
)

__all__ = ["NO_BODY", "BodyPlan", "RequestHead", "RequestLimits", "Scope", "ray_id"]

# ASGI scopes are untyped dictionaries; every value that is read from one is checked where it is
# read.
Scope = Mapping[str, Any]

# A name, an IPv4 address or a bracketed IPv6 address, and perhaps a port. Anything else could
# change the meaning of the URL that is built from it ("good.example/@evil").
_HOST: Final = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
# All but control characters; of those, tabs, and the line breaks of a head itself, which are
# counted. What is left of a head without them is unsafe.
_SAFE: Final = bytes({*range(0x20, 0x7F), *range(0x80, 0x100), 0x09, 0x0A})

# Headers about this connection, and those that only the host may say.
_DROPPED: Final = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
        b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect",
        b"http2-settings",
        b"cf-connecting-ip", b"cf-ray", b"x-forwarded-prefix", b"x-forwarded-proto", b"x-real-ip",
    }
)  # fmt: skip
_SPECIAL: Final = _DROPPED | {b"host", b"content-length", b"x-forwarded-for"}
_NEVER_NOMINATED: Final = {b"keep-alive", b"close", b"host", b"content-length", b""}
_ADDED: Final = (
    b"cf-connecting-ip:%s\ncf-ray:%s\nx-forwarded-for:%s\nx-forwarded-proto:%s\nx-real-ip:%s"
)
_ADDED_BREAKS: Final = _ADDED.count(b"\n") + 1
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


NO_BODY: Final = BodyPlan("none")


def ray_id() -> str:
    """Return a new request id: sixteen hex digits to find in a log; not a secret."""
    return f"{random.getrandbits(64):016x}"


class RequestHead:
    """The head of a request, read and checked in one pass over its headers."""

    __slots__ = ("_earlier", "_lines", "_scope", "_url_limit_bytes", "host", "plan")

    def __init__(self, scope: Scope, limits: RequestLimits) -> None:
        self._scope = scope
        self._url_limit_bytes = limits.url_bytes
        self._earlier: list[bytes] = []  # proxies that the request came through, by its own account
        self._lines: list[bytes] = []
        hosts: list[bytes] = []
        lengths: list[bytes] = []
        chunked = False
        nominated: bytes | None = None
        size_bytes = 0
        for name, value in scope["headers"]:
            size_bytes += len(name) + len(value) + 4
            if name not in _SPECIAL:
                self._lines.append(b"%s:%s" % (name, value))
            elif name == b"host":
                hosts.append(value)
                self._lines.append(b"host:" + value)
            elif name == b"content-length":
                lengths.append(value)
                self._lines.append(b"content-length:" + value)
            elif name == b"transfer-encoding":
                chunked = _is_chunked(value)
            elif name == b"connection":
                nominated = value if nominated is None else nominated + b"," + value
            elif name == b"x-forwarded-for":
                self._earlier.append(value)
        if size_bytes > limits.header_bytes:
            raise HeadersTooLarge(
                f"The headers are {size_bytes} bytes; the limit is {limits.header_bytes}."
            )
        self.host = _checked_host(hosts[0]) if len(hosts) == 1 else _not_one(hosts)
        if nominated is not None:
            self._lines = _without(self._lines, nominated)
        # The HTTP parser has refused messages whose framing is ambiguous.
        if lengths or chunked:
            length = _checked_length(lengths[0]) if lengths else None
            self.plan = _plan(scope["method"], length, limits, chunked=chunked)
        else:
            self.plan = NO_BODY

    def event_head(self, prefix: bytes, ray: str) -> str:
        """Return "METHOD URL\\nname:value\\n…"; `prefix` is the part of the path that routed."""
        scope = self._scope
        method: str = scope["method"]
        if method in _REFUSED_METHODS:
            raise MethodNotAllowed(f"The method {method} is not allowed.")
        path: bytes = scope["raw_path"][len(prefix) :] or b"/"
        query: bytes = scope["query_string"]
        size_bytes = len(path) + len(query)
        if size_bytes > self._url_limit_bytes:
            raise UrlTooLong(
                f"The URL is {size_bytes} bytes; the limit is {self._url_limit_bytes}."
            )
        if not path.startswith(b"/"):
            raise BadRequest("The request target must start with a slash.")
        scheme = scope["scheme"].encode()
        target = b"%s?%s" % (path, query) if query else path
        lines = self._lines
        breaks = len(lines) + (_ADDED_BREAKS + 1 if prefix else _ADDED_BREAKS)
        head = b"%s %s://%s%s\n%s\n%s" % (
            method.encode(),
            scheme,
            self.host.encode(),
            target,
            b"\n".join(lines),
            self._added(prefix, ray.encode(), scheme),
        )
        if head.count(b"\n") != breaks or head.translate(None, _SAFE):
            raise BadRequest("The request has control characters in its URL or headers.")
        return head.decode("latin-1")

    def _added(self, prefix: bytes, ray: bytes, scheme: bytes) -> bytes:
        """Return what only the host may say: who the client is, and how it came here."""
        client = self._scope.get("client")
        address = client[0].encode() if client else b"127.0.0.1"
        chain = b", ".join([*self._earlier, address]) if self._earlier else address
        added = _ADDED % (address, ray, chain, scheme, address)
        return added + b"\nx-forwarded-prefix:" + prefix if prefix else added


def _checked_length(value: bytes) -> int:
    # The parser has refused these too; a number of a thousand digits would still take its time.
    if not value.isdigit() or len(value) > 19:
        shown = value[:40].decode("latin-1")
        raise BadRequest(f"The Content-Length is {shown!r}; it must be a number of bytes.")
    return int(value)


def _not_one(hosts: list[bytes]) -> NoReturn:
    raise BadRequest(f"The request has {len(hosts)} Host headers; it must have exactly one.")


@lru_cache(1024)
def _checked_host(host: bytes) -> str:
    if _HOST.fullmatch(host) is None:
        raise BadRequest("The Host header is not a valid host name.")
    return host.decode("ascii").lower()


def _is_chunked(value: bytes) -> bool:
    if value.strip().lower() != b"chunked":
        raise BadRequest("The only transfer encoding that is understood is chunked.")
    return True


def _without(lines: list[bytes], nominated: bytes) -> list[bytes]:
    """Drop the headers that the Connection header names: they are about this connection."""
    names = {token.strip() for token in nominated.lower().split(b",")} - _NEVER_NOMINATED
    if not names:
        return lines
    return [line for line in lines if line.partition(b":")[0] not in names]


def _plan(method: str, length: int | None, limits: RequestLimits, *, chunked: bool) -> BodyPlan:
    if length is not None and length > limits.body_bytes:
        raise BodyTooLarge(f"The body is {length} bytes; the limit is {limits.body_bytes}.")
    if method in _BODILESS_METHODS or (length is None and not chunked):
        return NO_BODY
    if length is not None and length <= limits.whole_body_bytes:
        return BodyPlan("whole", length)
    return BodyPlan("stream", length)
