"""What is counted, how far, and how the counts of processes add up."""

import json

from belem.runtime.server import Outcome
from belem.runtime.server.observability.counters import Counters, merge
from tests.runtime.server.observability.events import event, reply


def test_requests_are_counted_by_outcome_and_status() -> None:
    counters = Counters()
    for status in (200, 204, 404):
        counters.add(event(status=status))
    counters.add(event(status=500, outcome=Outcome.EXCEPTION))
    counters.add(event(status=None, outcome=Outcome.CANCELED))
    counters.add(event(None, status=404, outcome=Outcome.NOT_FOUND))

    snapshot = counters.snapshot()

    assert snapshot["notes"]["requests"] == {
        "ok": {"2xx": 2, "4xx": 1},
        "exception": {"5xx": 1},
        "canceled": {"none": 1},
    }
    assert snapshot["(none)"]["requests"] == {"scriptNotFound": {"4xx": 1}}


def test_times_fall_into_buckets() -> None:
    counters = Counters()
    counters.add(event(duration_ms=1.0, owner=reply(cpu_seconds=0.0004)))
    counters.add(event(duration_ms=90_000, owner=reply(cpu_seconds=40)))

    counts = counters.snapshot()["notes"]

    assert (counts["response"]["buckets"][0], counts["response"]["buckets"][-1]) == (1, 1)
    assert counts["response"]["sum_s"] == 90.001
    assert (counts["cpu"]["buckets"][0], counts["cpu"]["buckets"][-1]) == (1, 1)
    assert counts["cpu"]["sum_s"] == 40.0004


def test_workers_beyond_the_limit_are_counted_together() -> None:
    counters = Counters(max_workers=2)
    for name in ("a", "b", "c", "d", "a"):
        counters.add(event(name))

    requests = {name: counts["requests"]["ok"] for name, counts in counters.snapshot().items()}

    assert requests == {"a": {"2xx": 2}, "b": {"2xx": 1}, "(other)": {"2xx": 2}}


def test_subrequests_and_ops_are_summed_and_kinds_are_bounded() -> None:
    counters = Counters()
    for number in range(70):
        owner = reply()
        owner.usage.subrequests = 2
        owner.usage.ops = {"NOTES.get": 1, f"made-up.{number}": 1}
        counters.add(event(owner=owner))

    counts = counters.snapshot()["notes"]

    assert counts["subrequests"] == 140
    assert counts["ops"]["NOTES.get"] == 70
    assert counts["ops"]["(other)"] == 7
    assert len(counts["ops"]) == 65


def test_snapshots_of_processes_add_up_and_stay_as_they_were() -> None:
    first, second = Counters(), Counters()
    first.add(event("a", duration_ms=2))
    second.add(event("a", duration_ms=2))
    second.add(event("b", status=500))
    one = json.loads(json.dumps(first.snapshot()))

    merged = merge([one, second.snapshot()])

    assert merged["a"]["requests"] == {"ok": {"2xx": 2}}
    assert sum(merged["a"]["response"]["buckets"]) == 2
    assert merged["b"]["requests"] == {"ok": {"5xx": 1}}
    assert one == first.snapshot()
