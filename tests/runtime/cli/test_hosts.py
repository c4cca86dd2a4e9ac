import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from belem.runtime.cli.delete import delete
from belem.runtime.cli.deploy import deploy
from belem.runtime.cli.list import list as list_command
from belem.runtime.control.client import HostRefused, HostUnreachable
from belem.sdk import UserError

TOKEN = "a-token-for-these-tests"


class Host:
    """A control API that answers as it is told, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.status = 200
        self.answer: object = {"success": True, "result": [], "errors": []}
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                assert self.headers["authorization"] == f"Bearer {TOKEN}"
                host.asked.append((self.command, self.path, body))
                text = json.dumps(host.answer).encode()
                self.send_response(host.status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_PUT = do_DELETE = do_GET

            def log_message(self, format: str, *args: object) -> None:
                """Be quiet."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def host() -> Iterator[Host]:
    made = Host()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    path = tmp_path / "hello.ts"
    path.write_text("export default { fetch(): Response { return new Response('hi') } }\n")
    return path


def ok(result: Result) -> str:
    if result.exception is not None:
        raise result.exception
    return result.output


def test_deploy_builds_uploads_and_prints_where_it_is(host: Host, worker: Path) -> None:
    host.answer = {
        "success": True,
        "errors": [],
        "result": {"number": 3, "version_id": "v-3", "url": "http://hello.localhost:8787/"},
    }

    shown = ok(CliRunner().invoke(deploy, [str(worker), "--host", host.url, "--token", TOKEN]))

    method, path, body = host.asked[0]
    assert (method, path) == ("PUT", "/client/v4/accounts/local/workers/scripts/hello")
    assert b'"main_module": "hello.ts"' in body
    assert b": Response" not in body  # types are stripped
    assert "Deployed hello version 3 (v-3) in " in shown
    assert "http://hello.localhost:8787/" in shown


def test_secrets_for_development_are_not_deployed(host: Host, worker: Path) -> None:
    (worker.parent / ".dev.vars").write_text("API_KEY=hunter2\n")
    host.answer = {
        "success": True,
        "errors": [],
        "result": {"number": 1, "version_id": "v", "url": "u"},
    }

    shown = ok(CliRunner().invoke(deploy, [str(worker), "--host", host.url, "--token", TOKEN]))

    assert b"hunter2" not in host.asked[0][2]
    assert "API_KEY from files for development are not deployed" in shown


def test_deploy_shows_why_a_host_refuses(host: Host, worker: Path) -> None:
    host.status = 400
    host.answer = {
        "success": False,
        "result": None,
        "errors": [{"code": 10021, "message": "Uncaught TypeError: no"}],
    }

    with pytest.raises(HostRefused, match=r"Uncaught TypeError: no \[code 10021\]"):
        ok(CliRunner().invoke(deploy, [str(worker), "--host", host.url, "--token", TOKEN]))


def test_list_is_a_table_or_json(host: Host, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    workers = [{"id": "hello", "number": 2, "modified_on": "2026-11-30T10:00:00.000+00:00"}]
    workers[0]["url"] = "http://hello.localhost:8787/"
    host.answer = {"success": True, "errors": [], "result": workers}
    options = ["--host", host.url, "--token-file", str(tmp_path / "token")]

    table = ok(CliRunner().invoke(list_command, options))
    as_json = ok(CliRunner().invoke(list_command, ["--json", *options]))

    assert table.splitlines()[1].split() == [
        "hello", "2", "2026-11-30T10:00:00", "http://hello.localhost:8787/",
    ]  # fmt: skip
    assert json.loads(as_json) == workers


def test_an_empty_host_says_what_to_do(host: Host) -> None:
    shown = ok(CliRunner().invoke(list_command, ["--host", host.url, "--token", TOKEN]))

    assert "belem deploy PATH" in shown


def test_delete_says_what_it_did(host: Host) -> None:
    options = ["hello", "--host", host.url, "--token", TOKEN]

    assert ok(CliRunner().invoke(delete, options)) == "Deleted hello.\n"
    assert host.asked[0][:2] == ("DELETE", "/client/v4/accounts/local/workers/scripts/hello")


def test_a_name_cannot_leave_its_path(host: Host) -> None:
    ok(CliRunner().invoke(delete, ["../../x", "--host", host.url, "--token", TOKEN]))

    assert host.asked[0][1].endswith("/scripts/..%2F..%2Fx")


def test_no_token_says_where_to_find_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--token-file"):
        ok(CliRunner().invoke(list_command, [], env={"BELEM_TOKEN": None}))
    with pytest.raises(UserError, match="There is no token file"):
        ok(CliRunner().invoke(list_command, ["--token-file", str(tmp_path / "none")]))


def test_no_host_says_how_to_start_one() -> None:
    options = ["--host", "127.0.0.1:9", "--token", TOKEN]

    with pytest.raises(HostUnreachable, match="belem serve"):
        ok(CliRunner().invoke(list_command, options))


def test_something_else_on_the_port_is_told(host: Host) -> None:
    host.answer = {"hello": "world"}

    with pytest.raises(HostUnreachable, match="is not a Belem control API"):
        ok(CliRunner().invoke(list_command, ["--host", host.url, "--token", TOKEN]))
