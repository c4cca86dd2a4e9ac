"""The place that every invocation passes: when it is over, and who is told."""

import logging

import pytest

from belem.runtime.server.observability import Invocation, Invocations
from belem.runtime.server.observability.invocation import CUT_LINE
from tests.runtime.server.observability.events import event, line, reply


def _count(invocations: Invocations, worker: str = "notes") -> int:
    counts = invocations.snapshot().get(worker)
    return sum(counts["response"]["buckets"]) if counts else 0


def test_an_invocation_is_over_when_its_reply_has_settled() -> None:
    invocations = Invocations()
    heard: list[Invocation] = []
    invocations.listen("notes", heard.append)
    owner = reply(settled=False)

    invocations.responded(event(owner=owner))
    before = (len(heard), _count(invocations))
    owner.settle()

    assert before == (0, 0)
    assert _count(invocations) == 1
    assert heard[0].wall_ms >= heard[0].response_ms


def test_listeners_hear_their_worker_until_they_stop() -> None:
    invocations = Invocations()
    heard: list[str] = []
    everything: list[str] = []
    stop = invocations.listen("a", lambda made: heard.append(made.worker))
    stop_all = invocations.listen_to_all(lambda made: everything.append(made.worker))

    for worker in ("a", "b", None):
        invocations.responded(event(worker))
    stop()
    stop()
    stop_all()
    invocations.responded(event("a"))

    assert heard == ["a"]
    assert everything == ["a", "b"]
    assert _count(invocations, "a") == 2


def test_what_is_listened_to_is_told_for_other_processes() -> None:
    changes: list[frozenset[str]] = []
    invocations = Invocations(on_change=changes.append)

    stop_first = invocations.listen("a", lambda _: None)
    stop_second = invocations.listen("a", lambda _: None)
    stop_first()
    stop_second()

    assert changes == [frozenset({"a"}), frozenset()]
    assert invocations.listened == frozenset()


def test_an_invocation_of_another_process_is_told_and_not_counted() -> None:
    heard: list[Invocation] = []
    here, there = Invocations(), Invocations()
    here.listen("notes", heard.append)
    there.listen("notes", lambda made: here.publish(Invocation.from_json(made.to_json())))

    there.responded(event())

    assert [made.worker for made in heard] == ["notes"]
    assert (_count(here), _count(there)) == (0, 1)


def test_lines_are_kept_only_for_workers_that_are_listened_to() -> None:
    invocations = Invocations()
    heard: list[Invocation] = []
    invocations.listen("notes", heard.append)
    tailed, other = reply(settled=False), reply(settled=False)

    invocations.logged("notes", line(tailed, "kept", "warn"))
    invocations.logged("other", line(other, "not kept"))
    invocations.logged("notes", line(None, "of no request"))
    invocations.responded(event(owner=tailed))
    tailed.settle()

    assert [(kept.level, kept.text) for kept in heard[0].lines] == [("warn", "kept")]
    assert other.kept_lines is None
    assert tailed.kept_lines is None


def test_kept_lines_are_bounded_and_make_room_when_they_are_told() -> None:
    invocations = Invocations(kept_bytes=1_000)
    heard: list[Invocation] = []
    invocations.listen("notes", heard.append)

    for _ in range(2):
        owner = reply(settled=False)
        for _ in range(10):
            invocations.logged("notes", line(owner, "x" * 300))
        owner.settle()
        invocations.responded(event(owner=owner))

    assert [[kept.text[:1] for kept in made.lines] for made in heard] == [["x", "x", "M"]] * 2
    assert heard[0].lines[-1].text == CUT_LINE


def test_a_listener_that_fails_costs_no_request(caplog: pytest.LogCaptureFixture) -> None:
    invocations = Invocations()

    def fail(_: Invocation) -> None:
        raise LookupError

    invocations.listen("notes", fail)
    with caplog.at_level(logging.ERROR, "belem.host"):
        invocations.responded(event())

    assert _count(invocations) == 1
    assert caplog.records[0].message == "invocation_listener_failed"
