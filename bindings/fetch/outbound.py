"""The capability "fetch": one worker's way out, over a connection pool of its own."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Final, Self, cast

import httpcore
import httpx

from belem.bindings.fetch.addresses import GuardedBackend
from belem.bindings.fetch.body import ResponseBody
from belem.bindings.fetch.decoding import ACCEPTED_ENCODINGS, DECODABLE
from belem.bindings.fetch.errors import FOREIGN, rejection
from belem.bindings.fetch.requests import MAX_REDIRECTS, Outbound, follow, parse
from belem.sdk.ops import Answer, Call, Json, Rejection

__all__ = ["Fetch"]

# Of one worker, all its requests together; of one request, six (the isolate sees to that).
_MAX_PENDING: Final = 64
_MAX_WAITING: Final = 1000
# Responses whose bodies are still open too. Those do not count above, or enough of them would wait
# for each other.
_MAX_OPEN: Final = 256
_KEPT_IDLE: Final = 6
_KEPT_IDLE_SECONDS: Final = 15

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_WITHOUT_BODY: Final = frozenset({101, 103, 204, 205, 304})

logger = logging.getLogger(__name__)


class Fetch:
    """Send a worker's requests.

    `fetch [{method, url, headers: [[name, value]…], redirect}]`, with the request's body as the
    body, answers `{status, statusText, headers: [[name, value]…], url, redirected}` with the
    response's body as a stream; no body for HEAD and for statuses that have none. A body that was
    unpacked is announced without `content-encoding` and `content-length`, so that a worker may hand
    the response on as it is.

    Only http and https; no cookies, proxies or credentials of this process. With `allow_private`
    False a worker reaches public addresses only.
    """

    def __init__(
        self,
        *,
        allow_private: bool,
        connect_timeout_seconds: float = 15,
        idle_timeout_seconds: float = 100,
    ) -> None:
        self._backend = GuardedBackend(allow_private=allow_private)
        self._timeout = {
            "connect": connect_timeout_seconds,
            "read": idle_timeout_seconds,
            "write": idle_timeout_seconds,
            "pool": idle_timeout_seconds,
        }
        self._pending = asyncio.Semaphore(_MAX_PENDING)
        self._waiting = 0
        self._pool: httpcore.AsyncConnectionPool | None = None
        self._closed = False

    async def __call__(self, call: Call, /) -> Answer:
        """Answer one host op."""
        if call.method != "fetch":
            raise Rejection(f"fetch has no method {call.method!r}.", name="TypeError")
        request = parse(call)
        async with self._turn():
            request, response, hops = await self._send_and_follow(request)
        return await self._answer(request, response, redirected=hops > 0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection; open bodies end with an error. Safe to call twice."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None, None]:
        if self._waiting >= _MAX_WAITING:
            raise Rejection(
                f"Too many requests of this worker wait for a connection; the limit is "
                f"{_MAX_WAITING}."
            )
        self._waiting += 1
        try:
            await self._pending.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._pending.release()

    async def _send_and_follow(self, request: Outbound) -> tuple[Outbound, httpcore.Response, int]:
        for hops in range(MAX_REDIRECTS + 1):
            response = await self._send(request)
            location = _location(response)
            if location is None or request.redirect == "manual":
                return request, response, hops
            await response.aclose()
            if request.redirect == "error":
                raise Rejection(
                    f"Fetch API cannot load: {request.url} (it redirects, and the request's "
                    'redirect mode is "error")',
                    name="TypeError",
                )
            request = follow(request, response.status, location)
        raise Rejection("Too many redirects.", name="TypeError")

    async def _send(self, request: Outbound) -> httpcore.Response:
        url = request.url
        try:
            return await self._open_pool().handle_async_request(
                httpcore.Request(
                    request.method,
                    httpcore.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=_sent_headers(request),
                    content=request.body,
                    extensions={"timeout": self._timeout},
                )
            )
        except FOREIGN as error:
            logger.debug("fetch_failed", extra={"error": repr(error)})
            raise rejection(error, str(url)) from error

    async def _answer(
        self, request: Outbound, response: httpcore.Response, *, redirected: bool
    ) -> Answer:
        # httpcore does not say what its extensions hold; this one is bytes.
        extensions = cast("Mapping[str, bytes]", response.extensions)  # pyright: ignore[reportUnknownMemberType]
        reason = extensions.get("reason_phrase", b"")
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers
        ]
        body: AsyncIterator[bytes] | None = None
        if request.method == "HEAD" or response.status in _WITHOUT_BODY:
            await response.aclose()
        else:
            encoding = _encoding(headers)
            if encoding is not None:
                headers = [
                    (name, value)
                    for name, value in headers
                    if name.lower() not in ("content-encoding", "content-length")
                ]
            body = ResponseBody(response, encoding=encoding, url=str(request.url))
        value: dict[str, Json] = {
            "status": response.status,
            "statusText": reason.decode("latin-1"),
            "headers": [[name, value] for name, value in headers],
            "url": str(request.url),
            "redirected": redirected,
        }
        return Answer(value, body)

    def _open_pool(self) -> httpcore.AsyncConnectionPool:
        if self._closed:
            raise Rejection("Network connection lost.")
        if (
            self._pool is None
        ):  # made when it is first needed: reading the certificates takes a while
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=httpx.create_ssl_context(),
                max_connections=_MAX_OPEN,
                max_keepalive_connections=_KEPT_IDLE,
                keepalive_expiry=_KEPT_IDLE_SECONDS,
                network_backend=self._backend,
            )
        return self._pool


def _sent_headers(request: Outbound) -> list[tuple[bytes, bytes]]:
    """Return the headers on the wire: the worker's, and those that only the sender knows."""
    headers = [(b"host", request.url.netloc)]
    headers += [(name.encode("ascii"), _encoded(value)) for name, value in request.headers]
    if all(name != "accept-encoding" for name, _ in request.headers):
        headers.append((b"accept-encoding", ACCEPTED_ENCODINGS.encode("ascii")))
    if isinstance(request.body, bytes):
        headers.append((b"content-length", str(len(request.body)).encode("ascii")))
    elif request.body is not None:
        headers.append((b"transfer-encoding", b"chunked"))
    elif request.method in ("POST", "PUT", "PATCH"):
        headers.append((b"content-length", b"0"))
    return headers


def _encoded(value: str) -> bytes:
    # A header is a string of bytes to JavaScript; Workers sends what is beyond them as UTF-8.
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode(errors="replace")


def _location(response: httpcore.Response) -> str | None:
    if response.status not in _REDIRECTS:
        return None
    for name, value in response.headers:
        if name.lower() == b"location":
            return value.decode("utf-8", errors="replace")
    return None


def _encoding(headers: list[tuple[str, str]]) -> str | None:
    """Return the body's encoding where it can be undone here; other bodies stay as they came."""
    values = [value for name, value in headers if name.lower() == "content-encoding"]
    encoding = ",".join(values).strip().lower()
    return encoding if encoding in DECODABLE else None
