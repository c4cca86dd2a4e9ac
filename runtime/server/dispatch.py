"""The data plane's one ASGI callable: HTTP in, a fetch event to an isolate, the reply out.

No framework stands in this path: a router and its response objects cost a third of the whole
request.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from belem.isolates import Event, GuestThrew, Isolate, IsolateLost, Reply
from belem.runtime.server.budget import Budget, Lease
from belem.runtime.server.client import Client, Receive, Send, abort
from belem.runtime.server.direct import Connection, DirectExchange
from belem.runtime.server.errors import BadReply, ClientGone, NoSuchWorker, ResponseBroken
from belem.runtime.server.failures import Outcome, describe
from belem.runtime.server.pages import Explanation, render
from belem.runtime.server.requests import NO_BODY, RequestHead, RequestLimits, Scope, ray_id
from belem.runtime.server.responses import NULL_BODY_STATUSES, ReplyHead, read_reply_head
from belem.sdk import BelemError

__all__ = ["Dispatch", "Explain", "RequestEvent", "Route", "Router", "Target"]

Explain = Callable[[GuestThrew], Explanation | None]

_PIECE_BYTES: Final = 256 * 1024


class Target(Protocol):
    """What a route leads to."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """The version that takes new requests."""
        ...

    async def dispatch(self, event: Event, /) -> Reply:
        """Hand the event to an isolate and return when the head of its reply is there."""
        ...

    def acquire(self) -> Isolate | None:
        """Return an isolate that takes an event at once; None if that has to be waited for."""
        ...


class Route(NamedTuple):
    """The worker for a request, and the start of the path that chose it, hidden from it."""

    target: Target
    prefix: bytes = b""


GoOn = Callable[[DirectExchange, Reply], None]
Router = Callable[[str, bytes], Route | None]
"""From the Host header and the raw path to a route. Called for every request: keep it short."""


class RequestEvent(NamedTuple):
    """One finished response. `path` has no query string: a log is no place for it.

    The request may go on in `reply`, until that is settled. Without one, it never reached a guest.
    """

    worker: str | None
    method: str
    path: str
    status: int | None
    duration_ms: float
    outcome: Outcome
    ray: str
    error: BaseException | None = None
    version: str = ""
    reply: Reply | None = None
    scope: Scope | None = None


@dataclass(slots=True)
class _Exchange:
    """What is known of a request so far; the failure path and the request event read it."""

    scope: Scope
    client: Client
    ray: str
    started_s: float
    target: Target | None = None
    status: int | None = None
    version: str = ""
    reply: Reply | None = None

    def sent(self, reply: Reply) -> None:
        """An isolate has taken the event."""
        self.reply = reply


class Dispatch:
    """Answer requests from workers. One object serves one port."""

    def __init__(
        self,
        router: Router,
        *,
        on_request: Callable[[RequestEvent], None],
        explain: Explain | None = None,
        limits: RequestLimits | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._router = router
        self._on_request = on_request
        self._explain = explain
        self._limits = limits or RequestLimits()
        self._budget = budget or Budget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            raise ResponseBroken(f"The data plane serves http, not {scope['type']}.")
        client = Client(receive, send, self._limits)
        exchange = _Exchange(scope, client, ray_id(), time.perf_counter())
        await self._run(exchange, self._serve(exchange))

    def begin(
        self, scope: Scope, connection: Connection, *, keep_alive: bool, go_on: GoOn
    ) -> DirectExchange | None:
        """Start a request on the direct way; None if it has to go the long one from the start.

        `go_on` serves the rest of an exchange as ASGI, through `finish`.
        """
        try:
            request = RequestHead(scope, self._limits)
            route = self._router(request.host, scope["raw_path"])
            if request.plan is not NO_BODY or route is None:
                return None
            ray = ray_id()
            head = request.event_head(route.prefix, ray)
            isolate = route.target.acquire()
            if isolate is None:
                return None
            exchange = DirectExchange(
                scope, connection, route.target, ray, keep_alive, self._report_direct, go_on
            )
            exchange.send(isolate, head)
        except BelemError:
            return None  # the long way meets it again, and says so
        return exchange

    async def finish(
        self, direct: DirectExchange, reply: Reply, receive: Receive, send: Send
    ) -> None:
        """Serve what is left of a request that began on the direct way."""
        client = Client(receive, send, self._limits)
        exchange = _Exchange(direct.scope, client, direct.ray, direct.started_s, direct.target)
        exchange.version, exchange.reply = direct.version, reply
        await self._run(exchange, self._go_on(exchange, reply))

    async def _run(self, exchange: _Exchange, work: Coroutine[None, None, None]) -> None:
        outcome, error = Outcome.OK, None
        try:
            await work
        except ClientGone:
            outcome = Outcome.CANCELED
            abort(exchange.scope)()  # one that only stopped reading would keep what waits for it
        except asyncio.CancelledError:
            outcome = Outcome.CANCELED
            raise
        except Exception as failure:  # the boundary of a request: everything becomes a page
            error = exchange.client.body_error or failure
            outcome = await self._fail(exchange, error)
        finally:
            self._report(exchange, outcome, error)
        if error is not None and outcome is Outcome.STREAM_DISCONNECTED:
            raise ResponseBroken("The response body failed after its headers were sent.") from error

    async def _serve(self, exchange: _Exchange) -> None:
        scope, client = exchange.scope, exchange.client
        request = RequestHead(scope, self._limits)
        route = self._router(request.host, scope["raw_path"])
        if route is None:
            raise NoSuchWorker(f"No worker is deployed at {request.host}.")
        exchange.target, exchange.version = route.target, route.target.version
        head = request.event_head(route.prefix, exchange.ray)
        body = None if request.plan is NO_BODY else await client.body(request.plan)
        async with client:
            reply = await route.target.dispatch(Event("fetch", head, body, exchange.sent))
            await self._answer(exchange, reply)

    async def _go_on(self, exchange: _Exchange, reply: Reply) -> None:
        if isinstance(reply.error, IsolateLost) and not reply.error.delivered:
            await self._serve(exchange)  # no guest has seen it: another isolate takes it
        elif reply.error is not None:
            raise reply.error
        else:
            async with exchange.client:
                await self._answer(exchange, reply)

    async def _answer(self, exchange: _Exchange, reply: Reply) -> None:
        complete = False
        try:
            head = read_reply_head(reply.head)
            body = reply.body
            is_head = exchange.scope["method"] == "HEAD"
            exchange.status = head.status
            headers = [*head.headers, *_framing(head, body, is_head=is_head)]
            headers.append((b"cf-ray", exchange.ray.encode()))
            await exchange.client.start(head.status, headers)
            if body is None or isinstance(body, bytes):
                bodiless = is_head or head.status in NULL_BODY_STATUSES
                await self._send_whole(exchange, b"" if body is None or bodiless else body)
                complete = True
            elif is_head or head.status in NULL_BODY_STATUSES:
                await exchange.client.finish()
            else:
                await self._send_stream(exchange, body)
                complete = True
        finally:
            # Tells the guest to stop producing; nothing to tell when it has finished.
            if not complete:
                await reply.aclose()

    async def _send_whole(self, exchange: _Exchange, body: bytes) -> None:
        """Send a body at the client's pace, and on the budget's account if it may take long."""
        client = exchange.client
        if len(body) <= _PIECE_BYTES:
            await client.finish(body)
            return
        lease = self._hold(exchange, len(body))
        try:
            last = (len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES
            for start in range(0, last, _PIECE_BYTES):
                await client.write(body[start : start + _PIECE_BYTES])
                lease.moved()
            await client.finish(body[last:])
        finally:
            lease.release()

    async def _send_stream(self, exchange: _Exchange, body: AsyncIterator[bytes]) -> None:
        client = exchange.client
        lease = self._hold(exchange, 0)
        try:
            async for chunk in body:
                if chunk:  # an empty chunk would end a chunked body
                    lease.resize(len(chunk))
                    await client.write(chunk)
                    lease.moved()
                    lease.resize(0)
            await client.finish()
        finally:
            lease.release()

    def _hold(self, exchange: _Exchange, held_bytes: int) -> Lease:
        name = exchange.target.name if exchange.target is not None else ""
        return self._budget.take(name, held_bytes, abort(exchange.scope))

    async def _fail(self, exchange: _Exchange, error: BaseException) -> Outcome:
        if exchange.client.response_started:
            return Outcome.STREAM_DISCONNECTED
        failure = describe(error)
        explanation = _explanation(error, self._explain) if self._explain is not None else None
        accept = b",".join(v for n, v in exchange.scope["headers"] if n == b"accept")
        page = render(failure, ray=exchange.ray, accept=accept, explanation=explanation)
        headers = page.headers
        if failure.outcome is Outcome.REFUSED:
            # The rest of a refused request is not read, so the connection cannot be used again.
            headers = [*headers, (b"connection", b"close")]
        exchange.status = page.status
        await exchange.client.start(page.status, headers)
        await exchange.client.finish(page.body)
        return failure.outcome

    def _report(
        self,
        exchange: _Exchange | DirectExchange,
        outcome: Outcome,
        error: BaseException | None,
    ) -> None:
        scope = exchange.scope
        self._on_request(
            RequestEvent(  # by position: there is one per request
                exchange.target.name if exchange.target is not None else None,
                scope["method"],
                scope["path"],
                exchange.status,
                (time.perf_counter() - exchange.started_s) * 1000,
                outcome,
                exchange.ray,
                error,
                exchange.version,
                exchange.reply,
                scope,
            )
        )

    def _report_direct(self, exchange: DirectExchange) -> None:
        self._report(exchange, exchange.outcome, None)


def _framing(
    head: ReplyHead, body: bytes | AsyncIterator[bytes] | None, *, is_head: bool
) -> list[tuple[bytes, bytes]]:
    if head.status in (204, 304):
        return []
    if head.status == 205:
        return [(b"content-length", b"0")]
    if isinstance(body, bytes) and body:
        length: int | None = len(body)
    elif is_head:
        length = head.content_length
    else:
        length = 0 if body is None or isinstance(body, bytes) else None
    # Without a length the server sends the body in chunks.
    return [] if length is None else [(b"content-length", b"%d" % length)]


def _explanation(error: BaseException, explain: Explain) -> Explanation | None:
    if isinstance(error, GuestThrew):
        return explain(error)
    if isinstance(error, BadReply):
        return Explanation("TypeError", error.message)
    return None
