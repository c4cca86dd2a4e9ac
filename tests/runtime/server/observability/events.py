"""Finished requests, made up for the tests of what watches them."""

from belem.isolates import LogLine, Reply
from belem.runtime.server import Outcome, RequestEvent

HEADERS = [
    (b"host", b"notes.localhost:8787"),
    (b"authorization", b"Bearer secret"),
    (b"user-agent", b"test"),
]


def reply(*, settled: bool = True, cpu_seconds: float = 0.0) -> Reply:
    made = Reply(1, lambda _: None, lambda _: None, 1 << 20)
    made.answered = True
    made.usage.cpu_seconds = cpu_seconds
    if settled:
        made.settle()
    return made


def line(owner: Reply | None, text: str, level: str = "log") -> LogLine:
    return LogLine(1 if owner else 0, level, text, owner)


def event(
    worker: str | None = "notes",
    *,
    status: int | None = 200,
    outcome: Outcome = Outcome.OK,
    duration_ms: float = 3.0,
    error: BaseException | None = None,
    owner: Reply | None = None,
    method: str = "GET",
    path: str = "/a",
    query: bytes = b"",
    headers: list[tuple[bytes, bytes]] | None = None,
) -> RequestEvent:
    scope = {
        "scheme": "http",
        "method": method,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": HEADERS if headers is None else headers,
    }
    return RequestEvent(
        worker, method, path, status, duration_ms, outcome, "00ff", error, "v1", owner, scope
    )
