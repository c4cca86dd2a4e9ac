"""The front of separate host processes: it takes requests, finds their worker, and hands them on.

No guest code runs here. What only the host may say of a request (where its client is) goes in a
header that clients cannot set, over a socket that clients cannot reach; everything else goes as it
came, and the host process's own dispatch makes the event of it.
"""

import re
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from belem.runtime.server.client import Client, Receive, Send
from belem.runtime.server.dispatch import RequestEvent
from belem.runtime.server.errors import ClientGone, NoSuchWorker, ResponseBroken
from belem.runtime.server.failures import Outcome, describe
from belem.runtime.server.fleet.fronted import CLIENT_HEADER
from belem.runtime.server.fleet.hop import Hop, HopRequest, HopResponse
from belem.runtime.server.pages import render
from belem.runtime.server.requests import NO_BODY, RequestHead, RequestLimits, Scope, ray_id
from belem.runtime.server.responses import NULL_BODY_STATUSES

__all__ = ["Front", "Processes", "find_worker"]

_FIRST_SEGMENT: Final = re.compile(rb"/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?=/|$)")
# About one connection: there are two here.
_HOP_BY_HOP: Final = frozenset(
    {
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization",
        b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect",
        b"http2-settings", CLIENT_HEADER,
    }
)  # fmt: skip
_NEVER_NOMINATED: Final = frozenset({b"host", b"content-length"})
_SERVERS_OWN: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"date"})


class Processes(Protocol):
    """Where the host processes are."""

    def knows(self, worker: str, /) -> bool:
        """Return whether the worker is deployed."""
        ...

    def hop(self, worker: str, /) -> AbstractAsyncContextManager[Hop]:
        """Return the way to the worker's process, started if need be, busy for the block."""
        ...


def find_worker(host: str, path: bytes, knows: Callable[[str], bool]) -> tuple[str, bytes] | None:
    """Find the worker, and the start of the path that named it, as a host process will."""
    label, dot, _ = host.partition(".")
    if dot and knows(label):
        return label, b""
    match = _FIRST_SEGMENT.match(path)
    if match is None or not knows(name := match[1].decode("ascii")):
        return None
    return name, match[0]


class Front:
    """Answer requests from host processes, as an ASGI application."""

    def __init__(
        self,
        processes: Processes,
        *,
        on_failure: Callable[[RequestEvent], None],
        limits: RequestLimits | None = None,
    ) -> None:
        self._processes = processes
        self._on_failure = on_failure
        self._limits = limits or RequestLimits()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            raise ResponseBroken(f"The data plane serves http, not {scope['type']}.")
        exchange = _Exchange(scope, Client(receive, send, self._limits), ray_id())
        try:
            await self._serve(exchange)
        except ClientGone:
            return  # the host process has noticed, and says so
        except Exception as failure:  # the boundary of a request: everything becomes a page
            await self._fail(exchange, exchange.client.body_error or failure)

    async def _serve(self, exchange: "_Exchange") -> None:
        scope, client = exchange.scope, exchange.client
        request = RequestHead(scope, self._limits)
        found = find_worker(request.host, scope["raw_path"], self._processes.knows)
        if found is None:
            raise NoSuchWorker(f"No worker is deployed at {request.host}.")
        exchange.worker, prefix = found
        request.event_head(prefix, exchange.ray)  # refuses what no event can be made of
        body = None if request.plan is NO_BODY else await client.body(request.plan)
        chunked = body is not None and request.plan.length is None
        if chunked and isinstance(body, bytes):
            chunked = False
        hop_request = HopRequest(
            _head(
                scope,
                body_bytes=len(body) if isinstance(body, bytes) else request.plan.length,
                chunked=chunked,
            ),
            body,
            chunked=chunked,
            is_head=scope["method"] == "HEAD",
        )
        async with (
            client,
            self._processes.hop(exchange.worker) as hop,
            hop.send(hop_request) as response,
        ):
            await _answer(exchange, response)

    async def _fail(self, exchange: "_Exchange", error: BaseException) -> None:
        failure = describe(error)
        outcome, status = failure.outcome, None
        started = exchange.client.response_started
        if started:
            outcome = Outcome.STREAM_DISCONNECTED
        else:
            accept = b",".join(v for n, v in exchange.scope["headers"] if n == b"accept")
            page = render(failure, ray=exchange.ray, accept=accept)
            status = page.status
            # The rest of the request is not read, so the connection cannot be used again.
            await exchange.client.start(status, [*page.headers, (b"connection", b"close")])
            await exchange.client.finish(page.body)
        self._on_failure(
            RequestEvent(
                worker=exchange.worker,
                method=exchange.scope["method"],
                path=exchange.scope["path"],
                status=status,
                duration_ms=(time.perf_counter() - exchange.started_s) * 1000,
                outcome=outcome,
                ray=exchange.ray,
                error=error,
            )
        )
        if started:
            raise ResponseBroken("The response body failed after its headers were sent.") from error


class _Exchange:
    """What is known of a request so far."""

    __slots__ = ("client", "ray", "scope", "started_s", "worker")

    def __init__(self, scope: Scope, client: Client, ray: str) -> None:
        self.scope = scope
        self.client = client
        self.ray = ray
        self.worker: str | None = None
        self.started_s = time.perf_counter()


async def _answer(exchange: _Exchange, response: HopResponse) -> None:
    headers = [
        (name.lower(), value)
        for name, value in response.headers
        if name.lower() not in _SERVERS_OWN
    ]
    client = exchange.client
    await client.start(response.status, headers)
    if exchange.scope["method"] == "HEAD" or response.status in NULL_BODY_STATUSES:
        await client.finish()
        return
    async for chunk in response.body():
        await client.write(chunk)
    await client.finish()


def _head(scope: Scope, *, body_bytes: int | None, chunked: bool) -> bytes:
    """Return the request's head, with the framing of this hop."""
    dropped = _HOP_BY_HOP | _nominated(scope)
    target: bytes = scope["raw_path"]
    if scope["query_string"]:
        target = b"%s?%s" % (target, scope["query_string"])
    client = scope.get("client")
    lines = [b"%s %s HTTP/1.1" % (scope["method"].encode("ascii"), target)]
    lines += [
        b"%s: %s" % (name, value)
        for name, value in scope["headers"]
        if name not in dropped and name != b"content-length"
    ]
    lines.append(b"%s: %s" % (CLIENT_HEADER, client[0].encode() if client else b"127.0.0.1"))
    if chunked:
        lines.append(b"transfer-encoding: chunked")
    elif body_bytes is not None:
        lines.append(b"content-length: %d" % body_bytes)
    return b"\r\n".join([*lines, b"", b""])


def _nominated(scope: Scope) -> frozenset[bytes]:
    """Return the headers that the Connection header names: they are about the client's hop."""
    values = [value for name, value in scope["headers"] if name == b"connection"]
    names = {token.strip() for value in values for token in value.lower().split(b",")}
    return frozenset(names - _NEVER_NOMINATED)
