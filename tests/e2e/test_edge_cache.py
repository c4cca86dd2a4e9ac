"""The worker that `make run` serves, with the real model, as its users meet it."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import Server, kill

pytestmark = pytest.mark.weights

FRANCE = {"prompt": "What is the capital of France?"}


@pytest.fixture
def client(edge_cache: Server) -> Iterator[httpx.Client]:
    with edge_cache.client() as client:
        yield client


def test_the_first_answer_is_a_miss_and_the_second_a_hit(client: httpx.Client) -> None:
    first = client.post("/", json=FRANCE)
    second = client.post("/", json=FRANCE)

    assert (first.status_code, first.headers["x-cache"]) == (200, "MISS")
    assert (second.status_code, second.headers["x-cache"]) == (200, "HIT")
    assert "Paris" in first.json()["response"]
    assert second.json() == first.json()
    assert first.json()["usage"]["completion_tokens"] > 0


def test_another_question_is_a_miss(client: httpx.Client) -> None:
    client.post("/", json=FRANCE)

    other = client.post("/", json={"prompt": "Say hello."})

    assert other.headers["x-cache"] == "MISS"


def test_only_post_is_allowed(client: httpx.Client) -> None:
    response = client.get("/")

    assert (response.status_code, response.text) == (405, "Method Not Allowed")


def test_a_stream_brings_tokens_as_they_come(client: httpx.Client) -> None:
    question = {"prompt": "Count from one to ten.", "stream": True}
    with client.stream("POST", "/", json=question) as response:
        events = [line.removeprefix("data: ") for line in response.iter_lines() if line]

    assert response.headers["content-type"] == "text/event-stream"
    assert events[-1] == "[DONE]"
    pieces = [json.loads(event) for event in events[:-1]]
    assert len(pieces) > 3
    assert pieces[-1]["response"] == ""
    assert pieces[-1]["usage"]["completion_tokens"] >= len(pieces) - 1


def test_a_stream_is_kept_for_the_next_asker(client: httpx.Client) -> None:
    question = {"prompt": "Name one colour.", "stream": True}
    first = client.post("/", json=question)

    second = client.post("/", json={"prompt": "Name one colour."})

    text = "".join(
        json.loads(line[6:])["response"] for line in first.text.split("\n\n") if "response" in line
    )
    assert (second.headers["x-cache"], second.json()["response"]) == ("HIT", text)


def test_closing_the_connection_stops_generation(edge_cache: Server, client: httpx.Client) -> None:
    (daemon,) = edge_cache.children("belem.runtime.inference")
    question = {"prompt": "Write a very long story about the sea.", "stream": True}
    wait_until_idle(daemon, seconds=120)  # it still warms up for long prompts

    with client.stream("POST", "/", json=question) as response:
        next(response.iter_lines())

    wait_until_idle(daemon, seconds=4)  # the whole answer would take more than twice that


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "no body"),
        (b"{", 400, "not JSON"),
        (b"{}", 400, "prompt"),
        (b'{"prompt": 5}', 400, "prompt"),
        (json.dumps({"prompt": "word " * 12_000}).encode(), 413, "5021"),
        (b'{"prompt": "' + b"x" * 10_000_000 + b'"}', 413, "10000014"),
    ],
    ids=["no body", "bad JSON", "no prompt", "number", "over the context", "10 MB"],
)
def test_bad_input_gets_a_clear_error(
    client: httpx.Client, body: bytes, status: int, says: str
) -> None:
    response = client.post("/", content=body)

    assert (response.status_code, says in response.json()["error"]) == (status, True), response.text


def test_a_daemon_killed_in_mid_answer_comes_back(edge_cache: Server, client: httpx.Client) -> None:
    (daemon,) = edge_cache.children("belem.runtime.inference")
    question = {"prompt": "Write a long story about a ship.", "stream": True}

    with client.stream("POST", "/", json=question) as response:
        lines = response.iter_lines()
        next(lines)
        kill(daemon)
        rest = [line for line in lines if line]
    after = client.post("/", json={"prompt": "Are you back?"})

    assert "data: [DONE]" not in rest
    assert after.status_code == 200, after.text
    assert edge_cache.children("belem.runtime.inference") != [daemon]


def test_a_whole_answer_lost_with_the_daemon_is_a_clear_error(
    edge_cache: Server, client: httpx.Client
) -> None:
    (daemon,) = edge_cache.children("belem.runtime.inference")
    wait_until_idle(daemon, seconds=120)
    with ThreadPoolExecutor(1) as pool:
        question = {"prompt": "Write a long story about a bridge."}
        pending = pool.submit(client.post, "/", json=question)
        wait_until_busy(daemon)

        kill(daemon)

        response = pending.result(timeout=60)
    assert response.status_code == 502
    assert "inference daemon" in response.json()["error"]
    assert client.post("/", json={"prompt": "And now?"}).status_code == 200


def wait_until_idle(pid: int, *, seconds: float) -> None:
    """Return once the process stops using the CPU; fail if it works on for longer than that."""
    wait_for(lambda ticks: ticks <= 2, pid, seconds=seconds)


def wait_until_busy(pid: int) -> None:
    """Return once the process works."""
    wait_for(lambda ticks: ticks >= 10, pid, seconds=30)


def wait_for(state: Callable[[int], bool], pid: int, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = cpu_ticks(pid)
        time.sleep(0.3)
        if state(cpu_ticks(pid) - before):
            return
    raise AssertionError("the daemon did not reach the state in time")


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])
