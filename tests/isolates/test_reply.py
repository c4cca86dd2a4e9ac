"""Replies: who is told that a request has settled."""

import logging

import pytest

from belem.isolates import Reply


def _reply() -> Reply:
    return Reply(1, lambda _: None, lambda _: None, 1024)


def test_the_observer_is_told_once_that_a_reply_has_settled() -> None:
    told: list[tuple[Reply, bool]] = []
    reply = _reply()
    reply.on_settled = lambda settled: told.append((settled, settled.is_settled))

    reply.settle()
    reply.settle()

    assert told == [(reply, True)]


def test_an_observer_that_fails_does_not_stop_the_isolate(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Reply) -> None:
        raise LookupError("observer")

    reply = _reply()
    reply.on_settled = fail

    with caplog.at_level(logging.ERROR, "belem.isolates"):
        reply.settle()

    assert reply.is_settled
    assert [record.message for record in caplog.records] == ["isolate_settled_failed"]
