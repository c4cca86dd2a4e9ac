"""What `belem tail` prints, against a host made of canned answers."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import click
import pytest
from click.testing import CliRunner, Result

from belem.runtime.cli.tail import tail

FAILED: dict[str, object] = {
    "outcome": "exception",
    "scriptName": "notes",
    "exceptions": [
        {
            "name": "TypeError",
            "message": "no\x1b[2J",
            "timestamp": 2,
            "stack": "TypeError: no\n    at fetch (notes.js:1:2)",
        }
    ],
    "logs": [{"level": "warn", "message": ["two\nlines \ud800"], "timestamp": 1}],
    "eventTimestamp": 0,
    "event": {
        "request": {"url": "http://notes.localhost/", "method": "GET", "headers": {}, "cf": {}},
        "response": {"status": 500},
    },
    "cpuTime": 1.25,
    "wallTime": 12.0,
}


@dataclass
class Host:
    """Answers one tail after another: a status, and lines. After the last one, a refusal."""

    answers: list[tuple[int, list[object]]] = field(default_factory=list[tuple[int, list[object]]])
    queries: list[dict[str, list[str]]] = field(default_factory=list[dict[str, list[str]]])
    port: int = 0


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.queries.append(parse_qs(urlsplit(self.path).query))
            refusal: object = {
                "success": False,
                "errors": [{"code": 10007, "message": "There is no worker 'notes' here."}],
            }
            status, lines = made.answers.pop(0) if made.answers else (404, [refusal])
            body = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield made
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between two tries, without waiting."""
    waited: list[float] = []
    monkeypatch.setattr("belem.runtime.cli.tail.time.sleep", waited.append)
    return waited


Run = Callable[..., Result]


@pytest.fixture
def run(host: Host) -> Run:
    def invoke(*options: str) -> Result:
        arguments = ["notes", "--host", f"http://127.0.0.1:{host.port}", "--token", "t", *options]
        return CliRunner().invoke(tail, arguments)

    return invoke


def test_pretty_shows_request_lines_and_exceptions(host: Host, run: Run) -> None:
    host.answers = [(200, [FAILED])]

    lines = run("--format", "pretty").stdout.splitlines()

    assert lines[0].startswith("GET http://notes.localhost/ - Exception Thrown @ ")
    assert lines[0].endswith("(500, 12 ms, CPU 1.2 ms)")
    assert lines[1:] == [
        "  (warn) two",
        "    lines ?",
        "  TypeError: no\\x1b[2J",
        "      at fetch (notes.js:1:2)",
    ]


def test_json_is_a_line_for_each_invocation(host: Host, run: Run) -> None:
    host.answers = [(200, [FAILED, {"dropped": 7}, FAILED])]

    result = run()

    assert [json.loads(line) for line in result.stdout.splitlines()] == [FAILED, FAILED]
    assert "7 invocations are not shown" in result.stderr


def test_options_become_the_filter(host: Host, run: Run) -> None:
    run(
        *("--status", "ok", "--status", "error", "--method", "GET", "--search", "x"),
        *("--header", "a:b", "--version-id", "v", "--sampling-rate", "0.5"),
    )

    assert host.queries == [
        {
            "status": ["ok", "error"],
            "method": ["GET"],
            "search": ["x"],
            "header": ["a:b"],
            "version": ["v"],
            "sampling_rate": ["0.5"],
        }
    ]


def test_a_refusal_ends_it(run: Run) -> None:
    result = run()

    assert result.exit_code == 1
    assert "There is no worker 'notes' here. [code 10007]" in str(result.exception)


def test_a_host_that_was_never_there_ends_it(host: Host) -> None:
    result = CliRunner().invoke(tail, ["notes", "--host", "http://127.0.0.1:9", "--token", "t"])

    assert "No host answers at http://127.0.0.1:9" in str(result.exception)


def test_a_host_that_closes_is_asked_again(host: Host, run: Run, waits: list[float]) -> None:
    host.answers = [(200, [FAILED]), (200, [FAILED])]

    result = run("--format", "json")

    assert len(result.stdout.splitlines()) == 2
    assert "Connected to notes; waiting" in result.stderr
    assert "Connecting again" in result.stderr
    assert "Connected to notes again" in result.stderr
    assert waits == [0.5, 0.5]


def test_ctrl_c_ends_it_quietly(host: Host, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("belem.runtime.cli.tail.time.sleep", interrupt)
    host.answers = [(200, [FAILED])]

    result = run("--format", "json")

    assert (result.exit_code, result.exception) == (0, None)


@pytest.mark.parametrize("rate", ["0", "1.1", "x"])
def test_an_impossible_sampling_rate_is_wrong_usage(rate: str, run: Run) -> None:
    assert run("--sampling-rate", rate).exit_code == click.UsageError.exit_code
