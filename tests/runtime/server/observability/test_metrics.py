"""The text that Prometheus reads, parsed back by Prometheus' own parser."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from prometheus_client import Metric, parser
from prometheus_client.openmetrics import parser as openmetrics

from belem.runtime.server import Outcome
from belem.runtime.server.observability import Invocations, Metrics, process_snapshot
from tests.runtime.server.observability.events import event, reply

Parse = Callable[[str], Iterable[Metric]]
PARSE_TEXT = cast("Parse", parser.text_string_to_metric_families)  # they have no annotations
PARSE_OPENMETRICS = cast("Parse", openmetrics.text_string_to_metric_families)  # pyright: ignore[reportUnknownMemberType]


class _Isolates:
    def counts(self) -> Mapping[str, int | Mapping[str, int]]:
        return {
            "isolates": 2,
            "isolate_memory_bytes": 1000,
            "isolates_spawned": 3,
            "isolates_ended": {"cpu-limit": 1},
            "images_built": 1,
        }


def _metrics(*processes: str) -> Metrics:
    invocations = Invocations()
    owner = reply(cpu_seconds=0.002)
    owner.usage.subrequests, owner.usage.ops = 2, {"NOTES.get": 2}
    invocations.responded(event(owner=owner, duration_ms=20))
    invocations.responded(event(status=500, outcome=Outcome.EXCEPTION))

    async def snapshots() -> Iterable[Mapping[str, Any]]:
        return [process_snapshot(invocations, _Isolates(), process=name) for name in processes]

    return Metrics(snapshots)


async def test_a_scrape_says_what_was_counted() -> None:
    body, media_type = await _metrics("0")("")

    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in PARSE_TEXT(body.decode())
        for sample in family.samples
    }
    assert media_type.startswith("text/plain")
    assert values["belem_requests_total", "2xx", "notes", "ok"] == 1
    assert values["belem_requests_total", "5xx", "exception", "notes"] == 1
    assert values["belem_request_duration_seconds_count", "notes"] == 2
    assert values["belem_request_duration_seconds_bucket", "0.01", "notes"] == 1
    assert values["belem_request_duration_seconds_bucket", "+Inf", "notes"] == 2
    assert values["belem_cpu_seconds_sum", "notes"] == 0.002
    assert values["belem_subrequests_total", "notes"] == 2
    assert values["belem_ops_total", "NOTES.get", "notes"] == 2
    assert values["belem_isolates",] == 2
    assert values["belem_isolate_memory_bytes",] == 1000
    assert values["belem_isolates_spawned_total",] == 3
    assert values["belem_isolates_ended_total", "cpu-limit"] == 1
    assert values["process_open_fds", "0"] > 2


async def test_processes_are_summed_and_keep_what_is_their_own() -> None:
    body, _ = await _metrics("0", "1")("")

    text = body.decode()
    assert 'belem_requests_total{outcome="ok",status="2xx",worker="notes"} 2.0' in text
    assert "belem_isolates 4.0" in text
    assert 'process_resident_memory_bytes{process="0"}' in text
    assert 'process_resident_memory_bytes{process="1"}' in text


async def test_openmetrics_is_spoken_where_it_is_asked_for() -> None:
    body, media_type = await _metrics("0")("application/openmetrics-text; version=1.0.0")

    names = {family.name for family in PARSE_OPENMETRICS(body.decode())}
    assert media_type.startswith("application/openmetrics-text")
    assert {"belem_requests", "belem_cpu_seconds", "process_cpu_seconds"} <= names
