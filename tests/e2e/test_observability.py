"""Watching a host as its operators do: `belem tail` and a scrape, against real processes."""

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import IO, Any

import httpx
import pytest

from tests.e2e.conftest import BELEM
from tests.support.processes import free_port, running

WORKER = """
export default {
  async fetch(request: Request, env: unknown, ctx: ExecutionContext): Promise<Response> {
    const { pathname } = new URL(request.url);
    console.log("at", pathname);
    if (pathname === "/throw") throw new TypeError("not today");
    if (pathname === "/later") {
      ctx.waitUntil(scheduler.wait(30).then(() => console.warn("after the response")));
    }
    if (pathname === "/loop") for (;;);
    return new Response("fine");
  },
};
"""
CONFIG = {"name": "notes", "main": "notes.ts", "limits": {"cpu_ms": 50}}


class Lines:
    """The lines that a process prints, read as they come."""

    def __init__(self, stream: IO[str]) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._read, args=(stream,))
        self._thread.start()

    def next(self) -> str:
        return self._lines.get(timeout=30)

    def until(self, text: str) -> None:
        while text not in self.next():
            pass

    def join(self) -> None:
        """Wait for the end of the stream: the process has ended."""
        self._thread.join(30)

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._lines.put(line)


class Host:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.control_port = free_port(), free_port()

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "BELEM_HOST": f"http://127.0.0.1:{self.control_port}",
            "BELEM_TOKEN_FILE": str(self.folder / "data" / "token"),
        }

    @contextmanager
    def serve(self) -> Generator[Popen[bytes], None, None]:
        command = [
            BELEM, "serve", "--data", str(self.folder / "data"), "--port", str(self.port),
            "--control-port", str(self.control_port), "--inference", "unix:/nowhere",
            "--access-log", "--log-format", "json",
        ]  # fmt: skip
        with running(command, self.folder, os.environ, port=self.control_port) as process:
            yield process

    def deploy(self) -> None:
        (self.folder / "notes.ts").write_text(WORKER)
        (self.folder / "wrangler.json").write_text(json.dumps(CONFIG))
        done = subprocess.run(
            [BELEM, "deploy", "."],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    @contextmanager
    def tail(self, *options: str) -> Generator[tuple[Popen[str], Lines, Lines], None, None]:
        process = Popen(
            [BELEM, "tail", *options],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        out, notes = Lines(process.stdout), Lines(process.stderr)
        try:
            yield process, out, notes
        finally:
            process.kill()
            process.wait()
            out.join()
            notes.join()

    def get(self, path: str) -> httpx.Response:
        url = f"http://127.0.0.1:{self.port}{path}"
        headers = {"host": "notes.localhost", "authorization": "Bearer of secrets"}
        return httpx.get(url, headers=headers, trust_env=False, timeout=30)

    def metrics(self) -> list[str]:
        token = (self.folder / "data" / "token").read_text().strip()
        response = httpx.get(
            f"http://127.0.0.1:{self.control_port}/metrics",
            headers={"authorization": f"Bearer {token}"},
            trust_env=False,
        )
        assert response.status_code == 200
        return response.text.splitlines()

    def request_lines(self) -> list[dict[str, Any]]:
        output = (self.folder / f".output-{self.control_port}.log").read_text()
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        return [line for line in lines if line["logger"] == "belem.requests"]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_tail_shows_lines_exceptions_and_what_waituntil_did(host: Host) -> None:
    with host.serve():
        host.deploy()
        with host.tail("notes", "--format", "json") as (process, out, notes):
            notes.until("Connected to notes")
            host.get("/a?key=1")
            host.get("/throw")
            host.get("/later")
            seen = [json.loads(out.next()) for _ in range(3)]
            host.get("/loop")
            looped = json.loads(out.next())

            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0

    fine, threw, later = seen
    assert [message["outcome"] for message in seen] == ["ok", "exception", "ok"]
    assert fine["event"]["request"]["url"] == "http://notes.localhost/a?key=1"
    assert fine["event"]["request"]["headers"]["authorization"] == "REDACTED"
    assert fine["event"]["response"] == {"status": 200}
    assert fine["logs"][0]["message"] == ["at /a"]
    assert 0 < fine["cpuTime"] < 1000
    assert threw["exceptions"][0]["name"] == "TypeError"
    assert threw["exceptions"][0]["message"] == "not today"
    assert "notes.ts" in threw["exceptions"][0]["stack"]
    assert [log["message"] for log in later["logs"]] == [["at /later"], ["after the response"]]
    assert fine["belem"]["memoryBytes"] > 1 << 20
    assert later["belem"]["ops"]["timer.sleep"] == 1
    assert later["wallTime"] > later["belem"]["responseTime"]
    assert looped["outcome"] == "exceededCpu"
    assert looped["cpuTime"] >= 50


def test_a_tail_outlives_its_host(host: Host) -> None:
    with host.serve():
        host.deploy()
    with host.tail("notes", "--format", "pretty") as (_, out, notes):
        assert "No host answers" in notes.next()
    with host.serve() as process, host.tail("notes", "--format", "pretty") as (_, out, notes):
        notes.until("Connected to notes")
        process.send_signal(signal.SIGTERM)
        # Sooner than requests would be cut off: a tail does not use up the time they have.
        assert process.wait(8) == 0
        notes.until("Connecting again")
        with host.serve():
            notes.until("Connected to notes again")
            host.get("/throw")

            assert "GET http://notes.localhost/throw - Exception Thrown" in out.next()
            assert out.next() == "  (log) at /throw\n"
            assert out.next() == "  TypeError: not today\n"


def test_a_tail_of_no_worker_says_which_there_are(host: Host) -> None:
    with host.serve():
        host.deploy()
        with host.tail("nodes") as (process, _, notes):
            text = notes.next()
            assert process.wait(20) == 1

    assert "There is no worker 'nodes' here. The workers: notes." in text


def test_a_scrape_and_the_log_say_what_happened(host: Host) -> None:
    with host.serve():
        host.deploy()
        for path in ("/", "/", "/throw", "/loop"):
            host.get(path)
        lines = host.metrics()
        requests = host.request_lines()

    assert 'belem_requests_total{outcome="ok",status="2xx",worker="notes"} 2.0' in lines
    assert 'belem_requests_total{outcome="exception",status="5xx",worker="notes"} 1.0' in lines
    assert 'belem_requests_total{outcome="exceededCpu",status="5xx",worker="notes"} 1.0' in lines
    assert 'belem_cpu_seconds_count{worker="notes"} 4.0' in lines
    assert 'belem_isolates_ended_total{cause="cpu-limit"} 1.0' in lines
    assert [line["outcome"] for line in requests] == ["ok", "ok", "exception", "exceededCpu"]
    assert len({line["version"] for line in requests}) == 1
    assert all(line["cpu_ms"] > 0 for line in requests)
