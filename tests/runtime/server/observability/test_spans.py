"""Spans, as the official SDK hands them to an exporter."""

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from opentelemetry.trace.status import StatusCode

from belem.isolates import GuestThrew
from belem.runtime.server import Outcome, RequestEvent
from belem.runtime.server.observability.invocation import invocation_of
from belem.runtime.server.observability.spans import Spans
from tests.runtime.server.observability.events import event, reply


def _span(request: RequestEvent, wall_ms: float = 5.0) -> ReadableSpan:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = Spans(provider)
    spans.record(invocation_of(request, wall_ms))
    spans.shutdown()
    (span,) = exporter.get_finished_spans()
    return span


def test_a_span_speaks_of_http_and_of_the_function() -> None:
    span = _span(event(owner=reply(cpu_seconds=0.001), query=b"q=1", path="/a/b"))

    assert (span.name, span.kind) == ("GET notes", SpanKind.SERVER)
    assert span.attributes is not None
    assert {
        "http.request.method": "GET",
        "url.scheme": "http",
        "url.path": "/a/b",
        "url.query": "q=1",
        "server.address": "notes.localhost",
        "http.response.status_code": 200,
        "faas.name": "notes",
        "faas.version": "v1",
        "faas.invocation_id": "00ff",
        "belem.outcome": "ok",
        "belem.cpu_ms": 1.0,
    }.items() <= dict(span.attributes).items()
    assert span.start_time is not None
    assert span.end_time == span.start_time + 5_000_000
    assert span.status.status_code is StatusCode.UNSET
    assert span.parent is None


def test_the_request_names_the_parent() -> None:
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    header = f"00-{trace_id}-{span_id}-01".encode()

    span = _span(event(headers=[(b"host", b"h"), (b"traceparent", header)]))

    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id) == (int(trace_id, 16), int(span_id, 16))
    assert span.parent.is_remote


def test_a_failed_invocation_is_an_error_with_its_exception() -> None:
    error = GuestThrew("TypeError", "no", "TypeError: no\n    at w.js:1:1")

    span = _span(event(status=500, outcome=Outcome.EXCEPTION, error=error))

    assert span.status.status_code is StatusCode.ERROR
    assert span.events[0].attributes is not None
    assert span.events[0].attributes["exception.type"] == "TypeError"
    assert span.attributes is not None
    assert span.attributes["error.type"] == "exception"


@pytest.mark.parametrize("host", [b"[::1]:8787", b"[::::]", b"localhost"])
def test_any_host_that_a_request_may_name_has_a_span(host: bytes) -> None:
    span = _span(event(method="BREW", headers=[(b"host", host)]))

    assert span.name == "HTTP notes"
    assert span.attributes is not None
    assert span.attributes["http.request.method"] == "_OTHER"
    assert span.attributes["server.address"] == host.decode().removesuffix(":8787")
