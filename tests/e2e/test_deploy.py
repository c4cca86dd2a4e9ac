"""`belem serve` and `belem deploy` as their users meet them: real processes, kills, redeploys."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import httpx
import pytest

from tests.e2e.conftest import BELEM
from tests.support.processes import free_port, running

WORKER = """
interface Env { NOTES: KVNamespace }
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/write") await env.NOTES.put("note", "kept");
    if (pathname === "/slow") await scheduler.wait(500);
    return new Response(`v1 ${await env.NOTES.get("note")}`);
  },
};
"""

FINE = "export default { fetch() { return new Response('fine') } }"


@dataclass
class Host:
    """A host's addresses, and the folder that it keeps everything in."""

    folder: Path
    port: int
    control_port: int

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def output(self) -> str:
        return (self.folder / f".output-{self.control_port}.log").read_text()

    @contextmanager
    def serve(self) -> Generator[Popen[bytes], None, None]:
        command = [
            BELEM, "serve", "--data", str(self.data), "--port", str(self.port),
            "--control-port", str(self.control_port), "--inference", "unix:/nowhere",
        ]  # fmt: skip
        with running(command, self.folder, os.environ, port=self.control_port) as process:
            yield process

    def belem(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BELEM, *arguments],
            cwd=self.folder,
            env={
                **os.environ,
                "BELEM_HOST": f"http://127.0.0.1:{self.control_port}",
                "BELEM_TOKEN_FILE": str(self.data / "token"),
            },
            capture_output=True,
            text=True,
            timeout=120,
        )

    def deploy(self, source: str, name: str = "notes") -> subprocess.CompletedProcess[str]:
        (self.folder / f"{name}.ts").write_text(source)
        return self.belem("deploy", f"{name}.ts")

    def get(self, path: str, name: str = "notes") -> httpx.Response:
        url = f"http://127.0.0.1:{self.port}{path}"
        return httpx.get(url, headers={"host": f"{name}.localhost"}, trust_env=False, timeout=30)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path, free_port(), free_port())


def test_a_worker_is_deployed_reached_listed_and_deleted(host: Host) -> None:
    with host.serve():
        deployed = host.deploy(WORKER)
        assert deployed.returncode == 0, deployed.stderr
        by_name = host.get("/")
        by_path = httpx.get(f"http://127.0.0.1:{host.port}/notes/x", trust_env=False)
        listed = json.loads(host.belem("list", "--json").stdout)
        deleted = host.belem("delete", "notes")
        gone = host.get("/")

    assert "Deployed notes version 1" in deployed.stdout
    assert f"http://notes.localhost:{host.port}/" in deployed.stdout
    assert (by_name.text, by_path.text) == ("v1 null", "v1 null")
    assert [worker["id"] for worker in listed] == ["notes"]
    assert deleted.returncode == 0
    assert gone.status_code == 404
    assert "There is nothing here yet" in gone.text


def test_a_kill_loses_nothing_that_was_acknowledged(host: Host) -> None:
    with host.serve() as process:
        assert host.deploy(WORKER).returncode == 0
        assert host.get("/write").text == "v1 kept"
        process.send_signal(signal.SIGKILL)
        process.wait()

    with host.serve():
        assert host.get("/").text == "v1 kept"


def test_a_redeploy_under_load_drops_no_request(host: Host) -> None:
    answers: list[str] = []
    failures: list[object] = []
    stop = threading.Event()

    def load() -> None:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{host.port}", trust_env=False, timeout=30
        ) as client:
            while not stop.is_set():
                try:
                    response = client.get("/notes/")
                except httpx.HTTPError as error:
                    failures.append(error)
                    continue
                answers.append(response.text)
                if response.status_code != 200:
                    failures.append(response)

    with host.serve(), ExitStack() as stack:
        assert host.deploy(WORKER).returncode == 0
        slow: list[str] = []
        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        stack.callback(stop.set)
        for number in range(2, 6):
            in_flight = threading.Thread(target=lambda: slow.append(host.get("/slow").text))
            in_flight.start()
            time.sleep(0.1)
            redeployed = host.deploy(WORKER.replace("v1", f"v{number}"))
            assert redeployed.returncode == 0, redeployed.stderr
            assert host.get("/").text == f"v{number} null"
            in_flight.join()
        stop.set()
        for thread in threads:
            thread.join()

    assert not failures
    assert {"v1 null", "v5 null"} <= set(answers)
    assert slow == [f"v{number} null" for number in range(1, 5)]


def test_a_worker_that_does_not_start_is_refused_and_the_old_one_stays(host: Host) -> None:
    with host.serve():
        assert host.deploy(WORKER).returncode == 0

        throwing = host.deploy("throw new TypeError('not today')")
        broken = host.deploy("export default {")
        empty = host.deploy("export const answer = 42")

        assert host.get("/").text == "v1 null"

    assert throwing.returncode == broken.returncode == empty.returncode == 1
    assert "TypeError: not today" in throwing.stderr
    assert "code 10021" in throwing.stderr
    assert "notes.ts:1" in broken.stderr
    assert "No event handlers were registered" in empty.stderr
    assert "Traceback" not in throwing.stderr + broken.stderr + empty.stderr


def test_a_wrong_token_is_refused(host: Host) -> None:
    with host.serve():
        refused = host.belem("list", "--token", "not-the-token-of-this-host")

    assert refused.returncode == 1
    assert "code 10000" in refused.stderr
    assert (host.data / "token").stat().st_mode & 0o777 == 0o600


def test_two_hosts_do_not_share_a_data_directory(host: Host) -> None:
    with host.serve():
        second = host.belem("serve", "--data", str(host.data), "--port", "0")

    assert second.returncode == 1
    assert "Another host runs on" in second.stderr


def test_a_port_in_use_says_what_to_do(host: Host, tmp_path: Path) -> None:
    with host.serve():
        second = host.belem("serve", "--data", str(tmp_path / "other"), "--port", str(host.port))

    assert second.returncode == 1
    assert f"Port {host.port} on 127.0.0.1 is in use" in second.stderr
    assert "Traceback" not in second.stderr


def test_a_damaged_worker_does_not_keep_the_others_from_starting(host: Host) -> None:
    with host.serve():
        assert host.deploy(WORKER).returncode == 0
        assert host.deploy(FINE, "fine").returncode == 0
    blobs = [path for path in (host.data / "blobs").glob("??/*") if b"NOTES" in path.read_bytes()]
    blobs[0].write_bytes(b"damaged")

    with host.serve():
        assert host.get("/", "fine").text == "fine"
        assert host.get("/").status_code == 503
        assert "worker_failed_to_start" in host.output
        assert host.deploy(WORKER).returncode == 0

        assert host.get("/").text == "v1 null"


def test_sigterm_finishes_what_is_in_flight(host: Host) -> None:
    answers: list[str] = []
    with host.serve() as process:
        assert host.deploy(WORKER).returncode == 0
        slow = threading.Thread(target=lambda: answers.append(host.get("/slow").text))
        slow.start()
        time.sleep(0.2)

        process.send_signal(signal.SIGTERM)

        assert process.wait(20) == 0
        slow.join()
    assert answers == ["v1 null"]
