"""Filters of tails: how they are read, and what they let pass."""

from dataclasses import dataclass, field

import pytest
from starlette.datastructures import QueryParams

from belem.runtime.control import TailFilter
from belem.runtime.control.errors import BadTailFilter
from belem.runtime.control.tail_filter import read_filter


@dataclass
class Line:
    text: str


@dataclass
class Seen:
    outcome: str = "ok"
    method: str = "GET"
    version: str = "v1"
    headers: list[tuple[str, str]] = field(default_factory=lambda: [("x-mark", "a blue one")])
    lines: list[Line] = field(default_factory=lambda: [Line("found it")])


def test_a_filter_without_conditions_accepts_everything() -> None:
    assert read_filter(QueryParams("")) == TailFilter()
    assert TailFilter().accepts(Seen())


@pytest.mark.parametrize(
    ("query", "accepted"),
    [
        ("status=ok", True),
        ("status=error", False),
        ("status=error&status=ok", True),
        ("status=canceled", False),
        ("method=get", True),
        ("method=POST&method=PUT", False),
        ("version=v1", True),
        ("version=v2", False),
        ("header=X-Mark", True),
        ("header=x-mark:blue", True),
        ("header=x-mark:%20red", False),
        ("header=other", False),
        ("search=found", True),
        ("search=lost", False),
        ("status=ok&method=PUT", False),
    ],
)
def test_every_condition_has_to_hold(query: str, *, accepted: bool) -> None:
    assert read_filter(QueryParams(query)).accepts(Seen()) is accepted


@pytest.mark.parametrize("outcome", ["exception", "exceededCpu", "exceededMemory", "unknown"])
def test_errors_are_all_ways_to_fail(outcome: str) -> None:
    assert read_filter(QueryParams("status=error")).accepts(Seen(outcome=outcome))


def test_sampling_draws_for_each_invocation() -> None:
    rare = read_filter(QueryParams("sampling_rate=0.25"))

    assert rare.accepts(Seen(), lambda: 0.2)
    assert not rare.accepts(Seen(), lambda: 0.25)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("status=fine", "'fine'"),
        ("sampling_rate=0", "'0'"),
        ("sampling_rate=1.5", "'1.5'"),
        ("sampling_rate=nan", "'nan'"),
        ("sampling_rate=often", "'often'"),
        ("search=a&search=b", "given 2 times"),
        ("search=" + "a" * 1025, "1025 characters"),
        ("&".join(["method=GET"] * 33), "33 values"),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(query: str, words: str) -> None:
    with pytest.raises(BadTailFilter, match=words):
        read_filter(QueryParams(query))
