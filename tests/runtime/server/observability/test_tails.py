"""Tails: what a client gets, what is dropped, and how they end."""

import asyncio
import json

import pytest

from belem.isolates import GuestThrew
from belem.runtime.control import TailFilter
from belem.runtime.control.errors import TooManyTails
from belem.runtime.server import Outcome
from belem.runtime.server.observability import Invocations, LiveTails
from belem.runtime.server.observability.tails import LiveTail
from tests.runtime.server.observability.events import event, line, reply

ALL = TailFilter()


async def test_a_message_has_the_shape_of_wranglers() -> None:
    invocations = Invocations()
    tail = LiveTails(invocations).open("notes", ALL)
    owner = reply(settled=False, cpu_seconds=0.0015)
    invocations.logged("notes", line(owner, "about to fail", "warn"))
    error = GuestThrew("TypeError", "no", "TypeError: no\n    at worker.js:1:2")
    invocations.responded(event(status=500, outcome=Outcome.EXCEPTION, error=error, owner=owner))
    owner.settle()

    (message,) = json.loads(json.dumps(await tail.take()))

    assert message["outcome"] == "exception"
    assert message["scriptName"] == "notes"
    assert message["scriptVersion"] == {"id": "v1"}
    assert message["cpuTime"] == 1.5
    assert message["wallTime"] >= 3
    assert message["truncated"] is False
    assert message["event"]["request"] == {
        "url": "http://notes.localhost:8787/a",
        "method": "GET",
        "headers": {
            "host": "notes.localhost:8787",
            "authorization": "REDACTED",
            "user-agent": "test",
        },
        "cf": {},
    }
    assert message["event"]["response"] == {"status": 500}
    assert [(log["level"], log["message"]) for log in message["logs"]] == [
        ("warn", ["about to fail"])
    ]
    (thrown,) = message["exceptions"]
    assert (thrown["name"], thrown["message"]) == ("TypeError", "no")
    assert "worker.js:1:2" in thrown["stack"]
    assert message["eventTimestamp"] <= thrown["timestamp"]


async def test_a_slow_client_is_told_how_many_it_missed() -> None:
    invocations = Invocations()
    tail = LiveTail(invocations, "notes", ALL, lambda _: None, max_queued=2)
    for _ in range(5):
        invocations.responded(event())

    messages = await tail.take()

    assert ["outcome" in message for message in messages] == [True, True, False]
    assert messages[-1] == {"dropped": 3}


async def test_a_queue_is_bounded_in_bytes_too() -> None:
    invocations = Invocations()
    tail = LiveTail(invocations, "notes", ALL, lambda _: None, max_queued_bytes=5_000)
    for _ in range(4):
        invocations.responded(event(query=b"z" * 3_000))

    assert [*await tail.take()][1:] == [{"dropped": 3}]


async def test_only_what_the_filter_accepts_is_queued() -> None:
    invocations = Invocations()
    tail = LiveTails(invocations).open("notes", TailFilter(methods=frozenset({"PUT"})))
    invocations.responded(event())
    invocations.responded(event("other", method="PUT"))
    invocations.responded(event(method="PUT"))

    assert len(await tail.take()) == 1


async def test_a_host_that_closes_lets_tails_have_what_is_queued() -> None:
    invocations = Invocations()
    tails = LiveTails(invocations)
    tail = tails.open("notes", ALL)
    waiting = asyncio.create_task(tails.open("notes", ALL).take())
    await asyncio.sleep(0)
    invocations.responded(event())
    assert len(await waiting) == 1

    tails.close()

    assert len(await tail.take()) == 1
    assert await tail.take() == []
    assert await tails.open("notes", ALL).take() == []


async def test_the_number_of_tails_is_bounded_and_a_closed_one_makes_room() -> None:
    invocations = Invocations()
    tails = LiveTails(invocations, max_tails=1)
    first = tails.open("notes", ALL)

    with pytest.raises(TooManyTails, match="limit is 1"):
        tails.open("notes", ALL)
    first.close()
    first.close()

    assert invocations.listened == frozenset()
    tails.open("notes", ALL)
