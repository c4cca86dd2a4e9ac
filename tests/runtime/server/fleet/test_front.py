import asyncio
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from belem.isolates import LogLine
from belem.runtime.control import Upload, Version
from belem.runtime.server import Composer, LiveStage
from belem.runtime.server.dispatch import RequestEvent
from belem.runtime.server.failures import Outcome
from belem.runtime.server.fleet.front import Front, find_worker
from belem.runtime.server.fleet.hop import Hop
from belem.runtime.server.serving import bind, serving

ADDRESSES = [
    ("hello.localhost", b"/"),
    ("hello.localhost", b"/other/x"),
    ("hello.localhost", b"/hello/x"),
    ("localhost", b"/hello"),
    ("localhost", b"/hello/"),
    ("localhost", b"/hello/x"),
    ("localhost", b"/hellos"),
    ("localhost", b"//hello"),
    ("localhost", b"/HELLO/"),
    ("hello", b"/"),
    ("nobody.localhost", b"/hello/x"),
    ("127.0.0.1", b"/nobody/"),
]


async def test_it_finds_workers_as_their_own_process_does(composer: Composer) -> None:
    stage = LiveStage(composer, port=1, log=_unheard, on_ai=lambda: None)
    source = "export default { fetch() { return new Response('hi') } }"
    upload = Upload("hello", "a.js", {"a.js": source})
    await stage.go_live(Version("1", 1, 0, upload), await stage.prepare(upload))

    for host, path in ADDRESSES:
        route = stage.route(host, path)
        found = find_worker(host, path, {"hello"}.__contains__)

        assert found == (None if route is None else (route.target.name, route.prefix))
    await stage.drain(grace_seconds=1)


def _unheard(worker: str, line: LogLine) -> None:
    """The worker says nothing."""


class Street:
    """A front before one worker, whose process a test plays, and what it reported."""

    def __init__(self, path: Path) -> None:
        self.seen = b""
        self.response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncf-ray: inner\r\n\r\nhi"
        self.failures: list[RequestEvent] = []
        self.url = ""
        self._hop = Hop(path)

    def knows(self, worker: str) -> bool:
        return worker == "hello"

    @asynccontextmanager
    async def hop(self, worker: str) -> AsyncGenerator[Hop, None]:
        yield self._hop

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen = await reader.readuntil(b"\r\n\r\n")
        writer.write(self.response)
        writer.close()

    def close(self) -> None:
        self._hop.close()


@pytest.fixture
async def street() -> AsyncIterator[Street]:
    listener = bind("127.0.0.1", 0)
    with tempfile.TemporaryDirectory(prefix="hop-") as folder:
        path = Path(folder) / "s"
        made = Street(path)
        made.url = listener.url
        front = Front(made, on_failure=made.failures.append)
        async with (
            await asyncio.start_unix_server(made.answer, path),
            serving(front, listener, drain_seconds=1),
        ):
            yield made
        made.close()


async def ask(street: Street, head: str, body: bytes = b"") -> bytes:
    port = int(street.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.replace("\n", "\r\n").encode("latin-1") + body)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer


async def test_a_request_goes_on_with_what_only_the_host_may_say(street: Street) -> None:
    head = (
        "GET /hello/caf%e9?x=1 HTTP/1.1\nHost: example.com\nBelem-Client-Address: 9.9.9.9\n"
        "Connection: close, X-Mine\nX-Mine: 1\nX-Other: 2\nTE: trailers\n\n"
    )

    answer = await ask(street, head)

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nhi")
    lines = street.seen.decode().split("\r\n")
    assert lines[0] == "GET /hello/caf%e9?x=1 HTTP/1.1"
    assert sorted(lines[1:-2]) == [
        "belem-client-address: 127.0.0.1",
        "host: example.com",
        "x-other: 2",
    ]


async def test_a_body_is_framed_anew(street: Street) -> None:
    await ask(
        street, "POST /hello/ HTTP/1.1\nHost: x\nContent-Length: 2\nConnection: close\n\n", b"ab"
    )
    whole = street.seen
    await ask(
        street,
        "POST /hello/ HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\nConnection: close\n\n",
        b"2\r\nab\r\n0\r\n\r\n",
    )

    assert b"\r\ncontent-length: 2\r\n" in whole
    assert b"\r\ntransfer-encoding: chunked\r\n" in street.seen
    assert b"content-length" not in street.seen


async def test_a_process_that_ends_is_a_503_with_workers_number(street: Street) -> None:
    street.response = b""

    answer = await ask(street, "GET /hello/ HTTP/1.1\nHost: x\nConnection: close\n\n")

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"1105" in answer
    assert [(event.worker, event.outcome) for event in street.failures] == [
        ("hello", Outcome.UNKNOWN)
    ]


async def test_a_process_that_ends_within_its_answer_breaks_the_connection(street: Street) -> None:
    street.response = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n"

    answer = await ask(street, "GET /hello/ HTTP/1.1\nHost: x\n\n")

    assert b"hi" in answer
    assert not answer.endswith(b"0\r\n\r\n")
    assert [event.outcome for event in street.failures] == [Outcome.STREAM_DISCONNECTED]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /nobody/ HTTP/1.1\nHost: x\n\n", b"404"),
        ("TRACE /hello/ HTTP/1.1\nHost: x\n\n", b"405"),
        ("GET /hello/ HTTP/1.1\nHost: a/b\n\n", b"400"),
        (f"GET /hello/{'x' * 20_000} HTTP/1.1\nHost: x\n\n", b"414"),
        ("POST /hello/ HTTP/1.1\nHost: x\nContent-Length: 999999999\n\n", b"413"),
    ],
)
async def test_what_no_event_can_be_made_of_is_refused_before_the_hop(
    street: Street, head: str, status: bytes
) -> None:
    answer = await ask(street, head)

    assert answer.split(b" ")[1] == status
    assert street.seen == b""
