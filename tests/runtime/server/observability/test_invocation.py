"""The record of an invocation: what it is made of, and its way between processes."""

import json

import pytest

from belem.isolates import (
    CpuLimitExceeded,
    GuestHung,
    GuestThrew,
    KeptLine,
    MemoryLimitExceeded,
)
from belem.runtime.server import Outcome
from belem.runtime.server.observability.invocation import Invocation, invocation_of
from tests.runtime.server.observability.events import event, reply


def test_an_invocation_says_what_the_request_was_and_cost() -> None:
    owner = reply(cpu_seconds=0.0025)
    owner.usage.subrequests, owner.usage.memory_bytes = 3, 4096
    owner.usage.ops = {"NOTES.get": 2}
    owner.kept_lines = [KeptLine(1, "log", "hello")]

    made = invocation_of(event(owner=owner, query=b"a=1"), 7.5)

    assert (made.worker, made.version, made.outcome, made.ray) == ("notes", "v1", "ok", "00ff")
    assert (made.url, made.method, made.status) == (
        "http://notes.localhost:8787/a?a=1",
        "GET",
        200,
    )
    assert (made.cpu_ms, made.response_ms, made.wall_ms) == (2.5, 3.0, 7.5)
    assert (made.subrequests, made.memory_bytes, made.ops) == (3, 4096, {"NOTES.get": 2})
    assert dict(made.headers)["authorization"] == "REDACTED"
    assert made.lines == (KeptLine(1, "log", "hello"),)
    assert made.exceptions == ()


def test_an_invocation_survives_json() -> None:
    owner = reply()
    owner.kept_lines = [KeptLine(1, "warn", "half \ud800")]
    error = GuestThrew("TypeError", "no", "TypeError: no\n    at w.js:1:1")
    made = invocation_of(event(owner=owner, error=error, outcome=Outcome.EXCEPTION), 1.0)

    again = Invocation.from_json(json.loads(json.dumps(made.to_json())))

    assert again == made
    assert again.outcome is Outcome.EXCEPTION


@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (GuestThrew("TypeError", "no", ""), "TypeError", "no"),
        (GuestThrew("", "thrown text", ""), "Error", "thrown text"),
        (GuestHung(), "Error", "hung"),
        (CpuLimitExceeded(11, 10), "Error", "CPU time limit"),
        (MemoryLimitExceeded(1 << 20), "Error", "memory limit"),
        (KeyError("a path of the host"), "Error", "internal error"),
    ],
)
def test_errors_become_exceptions_and_faults_of_the_host_stay_hidden(
    error: BaseException, name: str, message: str
) -> None:
    made = invocation_of(event(error=error, outcome=Outcome.EXCEPTION, status=500), 1.0)

    assert made.exceptions[0].name == name
    assert message in made.exceptions[0].message
    assert "a path of the host" not in str(made.exceptions)
