"""When traces are on, where they go, and that nothing hangs on them."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from belem.runtime.server.observability import Invocations, open_traces
from belem.runtime.server.observability.traces import traces_asked_for
from tests.runtime.server.observability.events import event


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, False),
        ({"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
    ],
)
def test_opentelemetrys_variables_turn_traces_on(
    environment: dict[str, str], *, asked: bool
) -> None:
    assert traces_asked_for(environment) is asked


def test_nothing_of_opentelemetry_is_imported_while_traces_are_off() -> None:
    code = (
        "import sys, belem.runtime.server; "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )

    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "'zipkin'"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "'grpc'"),
    ],
)
async def test_what_is_in_the_way_of_traces_is_logged(
    environment: dict[str, str], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "belem.host"):
        async with open_traces(Invocations(), environment):
            pass

    (record,) = caplog.records
    assert record.message == "traces_unavailable"
    assert words in vars(record)["error"]


class _Collector(HTTPServer):
    """A collector that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, ExportTraceServiceRequest]] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, _Collector)
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def collector() -> Iterator[_Collector]:
    with _Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def test_spans_arrive_at_a_collector_before_the_end(
    collector: _Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    invocations = Invocations()

    async with open_traces(invocations):
        invocations.responded(event())
        invocations.responded(event("other"))

    ((path, request),) = collector.requests
    (resource_spans,) = request.resource_spans
    names = {span.name for scope in resource_spans.scope_spans for span in scope.spans}
    attributes = {item.key: item.value.string_value for item in resource_spans.resource.attributes}
    assert path == "/v1/traces"
    assert names == {"GET notes", "GET other"}
    assert attributes["service.name"] == "belem"


async def test_a_collector_that_is_not_there_does_not_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    invocations = Invocations()

    async with open_traces(invocations):
        invocations.responded(event())
    invocations.responded(event())

    assert invocations.snapshot()["notes"]["requests"] == {"ok": {"2xx": 2}}
