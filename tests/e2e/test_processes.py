"""`belem serve --processes 2`: kills, redeploys and drains, as its users would meet them."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.serving import Load, Served, runs, wait_until
from tests.support.processes import free_port

HELLO = "export default { fetch() { return new Response('v1') } }"
SLOW = """
export default {
  async fetch(request, env) {
    console.log("asked", new URL(request.url).pathname);
    await scheduler.wait(700);
    return new Response("slow");
  },
};
"""
NOTES = """
interface Env { NOTES: KVNamespace }
export default {
  async fetch(request: Request, env: Env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/write") await env.NOTES.put("note", "kept");
    return new Response(await env.NOTES.get("note"));
  },
};
"""


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path, free_port(), free_port(), ("--processes", "2"))


def test_two_processes_serve_what_is_deployed_listed_and_deleted(served: Served) -> None:
    with served.serve():
        served.deploy(HELLO)
        processes = served.host_processes()
        answers = {served.get("/").text for _ in range(20)}
        listed = json.loads(served.belem("list", "--json").stdout)
        refused = served.belem("deploy", _written(served, "throw new TypeError('not today')"))
        still = {served.get("/").text for _ in range(20)}
        deleted = served.belem("delete", "hello")
        gone = {served.get("/").status_code for _ in range(20)}

    assert len(processes) == 2
    assert answers == still == {"v1"}
    assert [worker["id"] for worker in listed] == ["hello"]
    assert refused.returncode == 1
    assert "TypeError: not today" in refused.stderr
    assert "code 10021" in refused.stderr
    assert deleted.returncode == 0
    assert gone == {404}


def test_after_a_deploy_no_process_answers_with_the_old_version(served: Served) -> None:
    with served.serve():
        served.deploy(HELLO)
        with Load(served, "/hello/") as load:
            for number in range(2, 7):
                served.deploy(HELLO.replace("v1", f"v{number}"))
                fresh = [served.get("/").text for _ in range(30)]
                assert fresh == [f"v{number}"] * 30

    assert not load.failures
    assert {"v1", "v6"} <= set(load.answers)


def test_a_killed_process_costs_only_its_requests_and_is_started_again(served: Served) -> None:
    with served.serve():
        served.deploy(HELLO)
        before = served.host_processes()
        with Load(served, "/hello/") as load:
            wait_until(lambda: sum(load.answers.values()) > 50)
            os.kill(before[0], signal.SIGKILL)
            wait_until(lambda: served.output.count("host_process_ready") == 3)
            served.deploy(HELLO.replace("v1", "v2"))
            fresh = {served.get("/").text for _ in range(30)}
        after = served.host_processes()

    # Each of the four clients had at most one request in flight on it.
    assert len(load.failures) <= 4
    assert all(isinstance(failure, httpx.HTTPError) for failure in load.failures)
    assert fresh == {"v2"}
    assert len(after) == 2
    assert before[0] not in after
    assert before[1] in after
    assert "was killed by signal 9" in served.output


def test_no_process_outlives_its_supervisor(served: Served) -> None:
    with served.serve() as supervisor:
        processes = served.host_processes()
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()

        wait_until(lambda: not any(runs(pid) for pid in processes))

    assert len(processes) == 2


def test_sigterm_finishes_what_is_in_flight_in_every_process(served: Served) -> None:
    answers: list[str] = []
    with served.serve() as supervisor:
        served.deploy(SLOW)
        asking = [
            threading.Thread(target=lambda: answers.append(served.get("/").text)) for _ in range(8)
        ]
        for thread in asking:
            thread.start()
        wait_until(lambda: served.output.count("asked") == 8)
        processes = served.host_processes()

        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(20) == 0
        for thread in asking:
            thread.join()
        assert not any(runs(pid) for pid in processes)
    assert answers == ["slow"] * 8


def test_a_process_that_is_asked_to_end_finishes_and_is_replaced(served: Served) -> None:
    with served.serve():
        served.deploy(HELLO)
        process = served.host_processes()[0]
        with Load(served, "/hello/") as load:
            wait_until(lambda: sum(load.answers.values()) > 20)
            os.kill(process, signal.SIGTERM)
            wait_until(lambda: served.output.count("host_process_ready") == 3)

    assert not load.failures


def test_kv_is_one_for_all_processes(served: Served) -> None:
    with served.serve():
        served.deploy(NOTES)
        served.get("/write")

        assert {served.get("/").text for _ in range(20)} == {"kept"}


def test_metrics_add_up_over_the_processes_dead_ones_too(served: Served) -> None:
    with served.serve():
        served.deploy(HELLO)
        for _ in range(10):
            served.get("/")
        first = _requests(served)
        os.kill(served.host_processes()[0], signal.SIGKILL)
        wait_until(lambda: served.output.count("host_process_ready") == 3)
        for _ in range(10):
            served.get("/")

        assert (first, _requests(served)) == (10, 20)


@pytest.mark.parametrize("options", [("--processes", "2"), ("--isolation", "process")])
def test_a_tail_hears_of_every_process(tmp_path: Path, options: tuple[str, ...]) -> None:
    served = Served(tmp_path, free_port(), free_port(), options)
    with served.serve():
        served.deploy(SLOW.replace("700", "1"))
        lines = tmp_path / "tail.jsonl"
        with lines.open("w") as sink, served.tail("hello", sink) as tail:
            heard: list[dict[str, Any]] = []

            def has_heard_a_line() -> bool:
                # A request that was under way when its process began to listen has no lines.
                served.get("/")
                whole = [line for line in lines.read_text().splitlines(True) if line.endswith("\n")]
                heard[:] = [told for line in whole if (told := json.loads(line))["logs"]]
                return bool(heard)

            wait_until(has_heard_a_line)
            tail.send_signal(signal.SIGINT)

    assert heard[0]["scriptName"] == "hello"
    assert heard[0]["outcome"] == "ok"
    assert [log["message"] for log in heard[0]["logs"]] == [["asked /"]]


def test_settings_that_cannot_be_are_refused(tmp_path: Path) -> None:
    served = Served(tmp_path, free_port(), free_port(), ())

    none = served.belem("serve", "--data", "data", "--processes", "0")
    many = served.belem("serve", "--data", "data", "--processes", "257")
    both = served.belem("serve", "--data", "data", "--processes", "2", "--isolation", "process")

    assert "0 is not in the range 1<=x<=256" in none.stderr
    assert "257 is not in the range 1<=x<=256" in many.stderr
    assert "--processes 2 does not go with --isolation process" in both.stderr
    assert "Traceback" not in none.stderr + many.stderr + both.stderr


def _written(served: Served, source: str) -> str:
    (served.folder / "hello.ts").write_text(source)
    return "hello.ts"


def _requests(served: Served) -> int:
    token = (served.data / "token").read_text().strip()
    scraped = httpx.get(
        f"http://127.0.0.1:{served.control_port}/metrics",
        headers={"authorization": f"Bearer {token}"},
        trust_env=False,
    )
    lines = [line for line in scraped.text.splitlines() if line.startswith("belem_requests_total{")]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)
