"""`belem dev` as its users meet it: saves, mistakes, crashes, Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import BELEM, DevServer, Server, kill

HELLO = "export default { fetch() { return new Response('one') } }"


def poll(server: Server, wanted: str, path: str = "/") -> httpx.Response:
    """Ask until the answer holds the wanted text; fail after ten seconds."""
    deadline = time.monotonic() + 10
    with server.client() as client:
        while True:
            response = client.get(path)
            if wanted in response.text:
                return response
            assert time.monotonic() < deadline, f"{wanted!r} never came: {response.text}"


def test_a_bare_file_runs_and_a_save_shows(dev: DevServer) -> None:
    server = dev("worker.js", {"worker.js": HELLO})
    poll(server, "one")

    (server.folder / "worker.js").write_text(HELLO.replace("one", "two"))

    assert poll(server, "two").status_code == 200


def test_a_broken_save_shows_its_place_and_the_next_one_recovers(dev: DevServer) -> None:
    server = dev("worker.ts", {"worker.ts": HELLO})
    poll(server, "one")

    (server.folder / "worker.ts").write_text("export default {\n  fetch() { return new = 1 }\n}")
    broken = poll(server, "worker.ts:2:")
    (server.folder / "worker.ts").write_text(HELLO.replace("one", "two"))

    assert broken.status_code == 500
    server.wait_for_output("worker.ts:2:")
    assert poll(server, "two").status_code == 200


def test_a_reload_leaves_requests_in_flight_and_kv_alone(dev: DevServer) -> None:
    source = """
    interface Env { NOTES: KVNamespace }
    export default {
      async fetch(request: Request, env: Env) {
        const { pathname } = new URL(request.url);
        if (pathname === "/write") await env.NOTES.put("note", "kept");
        if (pathname === "/slow") await scheduler.wait(1500);
        return new Response("v1 " + (await env.NOTES.get("note")));
      },
    };
    """
    server = dev("worker.ts", {"worker.ts": source})
    with server.client() as client:
        client.get("/write")
        slow: list[str] = []
        thread = threading.Thread(target=lambda: slow.append(client.get("/slow").text))
        thread.start()
        time.sleep(0.2)

        (server.folder / "worker.ts").write_text(source.replace("v1", "v2"))

        fresh = poll(server, "v2")
        thread.join()
    assert fresh.text == "v2 kept"
    assert slow == ["v1 kept"]


def test_an_imported_file_is_watched_too(dev: DevServer) -> None:
    files = {
        "src/worker.ts": "import { text } from './text';\n"
        "export default { fetch: () => new Response(text) }",
        "src/text.ts": "export const text: string = 'one';",
    }
    server = dev("src/worker.ts", files)
    poll(server, "one")

    (server.folder / "src/text.ts").write_text("export const text: string = 'two';")

    poll(server, "two")


def test_an_exception_gives_1101_with_the_place_in_the_source(dev: DevServer) -> None:
    source = "interface Unused {\n  a: string;\n}\n\nexport default {\n  fetch(): Response {\n"
    source += "    throw new RangeError('too far');\n  },\n};\n"
    server = dev("worker.ts", {"worker.ts": source})

    with server.client() as client:
        page = client.get("/", headers={"Accept": "text/html"})

    assert page.status_code == 500
    assert "1101" in page.text
    assert "too far" in page.text
    assert "worker.ts:7:" in page.text
    assert "(native)" not in page.text
    server.wait_for_output("worker.ts:7:")


def test_console_output_and_request_lines_are_printed(dev: DevServer) -> None:
    source = (
        "export default { fetch() { console.log('seen', { a: 1 }); return new Response('one') } }"
    )
    server = dev("worker.js", {"worker.js": source})

    with server.client() as client:
        client.get("/some/path?q=1")

    server.wait_for_output("seen { a: 1 }")
    server.wait_for_output("GET /some/path")
    server.wait_for_output("200")


def test_a_client_that_left_in_mid_stream_is_printed_as_closed(dev: DevServer) -> None:
    source = """
    export default {
      fetch: () => new Response(new ReadableStream({
        async pull(controller) {
          controller.enqueue(new TextEncoder().encode("more"));
          await scheduler.wait(5);
        },
      })),
    };
    """
    server = dev("worker.js", {"worker.js": source})

    with server.client() as client, client.stream("GET", "/endless") as response:
        next(response.iter_raw())

    server.wait_for_output("GET /endless closed")


def test_start_up_says_the_url_and_the_inferred_bindings(dev: DevServer) -> None:
    source = "interface Env { NOTES: KVNamespace }\n" + HELLO
    server = dev("worker.ts", {"worker.ts": source})

    server.wait_for_output(f"Ready on http://localhost:{server.port}")
    server.wait_for_output("env.NOTES")
    server.wait_for_output("declared by the handler's Env")


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    (tmp_path / "worker.js").write_text(HELLO)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = subprocess.run(
            [BELEM, "dev", "worker.js", "--port", str(port)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert done.returncode == 1
    assert str(port) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [BELEM, "dev", "nothing.ts"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert done.returncode == 1
    assert "nothing.ts" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dropped_connection_does_not_end_it(dev: DevServer) -> None:
    server = dev("worker.js", {"worker.js": HELLO})
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf")

    assert poll(server, "one").status_code == 200


def test_ctrl_c_ends_everything(dev: DevServer) -> None:
    source = "export default { fetch: (request, env) => new Response(typeof env.AI.run) }"
    server = dev("worker.js", {"worker.js": source})
    server.wait_for_output("starting the daemon")
    children = server.children("belem.runtime.inference")

    server.process.send_signal(signal.SIGINT)

    assert server.process.wait(20) in (0, 130, -signal.SIGINT)
    assert children
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize("count", [50])
def test_acknowledged_writes_survive_kill_9_of_the_host(dev: DevServer, count: int) -> None:
    source = """
    interface Env { NOTES: KVNamespace }
    export default {
      async fetch(request: Request, env: Env) {
        const key = new URL(request.url).pathname.slice(1);
        if (request.method === "PUT") { await env.NOTES.put(key, key); return new Response("ok"); }
        const { keys } = await env.NOTES.list();
        return Response.json(keys.map(({ name }) => name));
      },
    };
    """
    server = dev("worker.ts", {"worker.ts": source})
    acknowledged: list[str] = []

    def write() -> None:
        with server.client() as client:
            for number in range(10_000):
                try:
                    client.put(f"/k{number}").raise_for_status()
                except httpx.HTTPError:
                    return
                acknowledged.append(f"k{number}")

    writer = threading.Thread(target=write)
    writer.start()
    while len(acknowledged) < count:
        time.sleep(0.005)
    kill(server.process.pid)
    writer.join()

    again = dev("worker.ts")
    with again.client() as client:
        kept = set(json.loads(client.get("/").text))
    assert set(acknowledged) <= kept
    assert os.path.exists(server.folder / ".belem" / "state")
