"""`belem serve --isolation process`: every worker in a host process of its own."""

import json
import os
import signal
import socket
import threading
from pathlib import Path

import httpx
import pytest

from tests.e2e.serving import Load, Served, runs, wait_until
from tests.support.processes import free_port

HELLO = "export default { fetch() { return new Response('v1') } }"
SLOW = """
export default {
  async fetch(request) {
    console.log("asked");
    await scheduler.wait(700);
    return new Response("slow");
  },
};
"""
FOR_EVER = """
export default {
  fetch(request) {
    console.log("asked");
    let timer;
    const body = new ReadableStream({
      pull(controller) {
        return scheduler.wait(5).then(() => controller.enqueue(new TextEncoder().encode("x")));
      },
      cancel() { console.log("cancelled"); },
    });
    return new Response(body);
  },
};
"""
ECHO = "export default { fetch(request) { return new Response(request.body) } }"
WHO = """
export default {
  fetch(request) {
    const header = (name) => request.headers.get(name);
    return Response.json([
      header("cf-connecting-ip"), header("x-forwarded-for"), header("belem-client-address"),
      header("x-forwarded-prefix"), request.url,
    ]);
  },
};
"""
NOTES = """
interface Env { NOTES: KVNamespace }
export default {
  async fetch(request: Request, env: Env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/write") await env.NOTES.put("note", "kept", { metadata: { at: 1 } });
    if (pathname === "/long") await env.NOTES.put("x".repeat(600), "");
    if (pathname === "/list") return Response.json(await env.NOTES.list());
    return new Response(await env.NOTES.get("note"));
  },
};
"""


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path, free_port(), free_port(), ("--isolation", "process"))


def test_each_worker_has_a_process_of_its_own(served: Served) -> None:
    with served.serve():
        served.deploy(HELLO)
        served.deploy(HELLO.replace("v1", "other"), "other")
        processes = served.host_processes()
        answers = (served.get("/").text, served.get("/", "other").text)
        refused = served.belem("deploy", _written(served, "throw new TypeError('not today')"))
        still = served.get("/").text
        listed = json.loads(served.belem("list", "--json").stdout)
        deleted = served.belem("delete", "other")
        gone = served.get("/", "other")
        wait_until(lambda: len(served.host_processes()) == 1)

    assert len(set(processes)) == 2
    assert answers == ("v1", "other")
    assert refused.returncode == 1
    assert "TypeError: not today" in refused.stderr
    assert "code 10021" in refused.stderr
    assert still == "v1"
    assert [worker["id"] for worker in listed] == ["hello", "other"]
    assert deleted.returncode == 0
    assert gone.status_code == 404


def test_a_killed_process_harms_no_other_and_is_started_again(served: Served) -> None:
    failed: list[httpx.Response] = []
    with served.serve():
        served.deploy(SLOW, "slow")
        victim = served.host_processes()[0]
        served.deploy(HELLO)
        with Load(served, "/hello/") as load:
            asking = threading.Thread(target=lambda: failed.append(served.get("/", "slow")))
            asking.start()
            wait_until(lambda: "asked" in served.output)
            os.kill(victim, signal.SIGKILL)
            asking.join()
            again = served.get("/", "slow")

    assert not load.failures
    assert failed[0].status_code == 503
    assert "1105" in failed[0].text
    assert again.text == "slow"


def test_a_redeploy_under_load_drops_no_request_and_is_live_at_once(served: Served) -> None:
    with served.serve():
        served.deploy(HELLO)
        with Load(served, "/hello/") as load:
            for number in range(2, 5):
                served.deploy(HELLO.replace("v1", f"v{number}"))
                assert [served.get("/").text for _ in range(10)] == [f"v{number}"] * 10

    assert not load.failures
    assert {"v1", "v4"} <= set(load.answers)


def test_a_restart_brings_workers_back_when_they_are_asked(served: Served) -> None:
    with served.serve():
        served.deploy(HELLO)

    with served.serve():
        before = served.host_processes()
        answer = served.get("/").text

    assert before == []
    assert answer == "v1"


def test_bodies_stream_through_both_ways_at_once(served: Served) -> None:
    """The worker's answer begins before the request ends, which no half-duplex client survives."""
    size_bytes = 64 << 20

    with served.serve():
        served.deploy(ECHO)
        received = _echoed(served.port, size_bytes)

    assert received == size_bytes


def test_a_client_that_leaves_cancels_its_request(served: Served) -> None:
    with served.serve():
        served.deploy(FOR_EVER)
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.sendall(b"GET /hello/ HTTP/1.1\r\nhost: localhost\r\n\r\n")
            wait_until(lambda: "asked" in served.output)
            assert client.recv(100).startswith(b"HTTP/1.1 200")

        wait_until(lambda: "cancelled" in served.output)


def test_what_the_host_says_of_a_request_cannot_be_forged(served: Served) -> None:
    headers = {
        "belem-client-address": "9.9.9.9",
        "cf-connecting-ip": "9.9.9.9",
        "x-forwarded-for": "8.8.8.8",
    }
    with served.serve():
        served.deploy(WHO)
        url = f"http://127.0.0.1:{served.port}/hello/a%20b?c"
        seen = httpx.get(url, headers=headers, trust_env=False).json()

    assert seen == [
        "127.0.0.1",
        "8.8.8.8, 127.0.0.1",
        None,
        "/hello",
        f"http://127.0.0.1:{served.port}/a%20b?c",
    ]


def test_kv_is_kept_by_the_front(served: Served) -> None:
    with served.serve():
        served.deploy(NOTES)
        kept = served.get("/write").text
        listed = served.get("/list").json()
        too_long = served.get("/long").status_code

    with served.serve():
        later = served.get("/").text

    assert (kept, later) == ("kept", "kept")
    assert listed["keys"] == [{"name": "note", "metadata": {"at": 1}}]
    assert too_long == 500


def test_sigterm_finishes_what_is_in_flight(served: Served) -> None:
    answers: list[str] = []
    with served.serve() as supervisor:
        served.deploy(SLOW)
        asking = threading.Thread(target=lambda: answers.append(served.get("/").text))
        asking.start()
        wait_until(lambda: "asked" in served.output)
        processes = served.host_processes()

        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(20) == 0
        asking.join()
        assert not any(runs(pid) for pid in processes)
    assert answers == ["slow"]
    assert list((served.data / "processes").iterdir()) == []


def test_no_process_outlives_its_supervisor(served: Served) -> None:
    with served.serve() as supervisor:
        served.deploy(HELLO)
        processes = served.host_processes()
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()

        wait_until(lambda: not any(runs(pid) for pid in processes))

    assert len(processes) == 1


def _written(served: Served, source: str) -> str:
    (served.folder / "hello.ts").write_text(source)
    return "hello.ts"


def _echoed(port: int, size_bytes: int) -> int:
    """Send a body and read its echo at the same time; return how much of it came back."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        head = f"POST /hello/ HTTP/1.1\r\nhost: x\r\ncontent-length: {size_bytes}\r\n"
        client.sendall(head.encode() + b"connection: close\r\n\r\n" + b"first")
        received = b""
        while not received.endswith(b"5\r\nfirst\r\n"):
            received += client.recv(1 << 16)

        def send() -> None:
            rest = size_bytes - 5
            while rest:
                piece = b"x" * min(rest, 1 << 20)
                client.sendall(piece)
                rest -= len(piece)

        sending = threading.Thread(target=send)
        sending.start()
        echoed = 5
        while data := client.recv(1 << 20):
            echoed += data.count(b"x")
        sending.join()
        return echoed
