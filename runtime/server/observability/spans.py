"""One invocation as one span, in OpenTelemetry's words for HTTP servers and functions.

The only module that imports OpenTelemetry.
"""

import re
from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.status import Status, StatusCode
from opentelemetry.util.types import AttributeValue

from belem import __version__
from belem.runtime.server.failures import Outcome
from belem.runtime.server.observability.invocation import Invocation

__all__ = ["Spans"]

_SERVICE: Final = "belem"
_PARENT_HEADERS: Final = ("traceparent", "tracestate")
_METHODS: Final = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
)
_PORT: Final = re.compile(r":\d*$")
_NS_PER_MS: Final = 1_000_000


class Spans:
    """Make a span of each invocation and hand it to a provider, which this shuts down."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("belem", __version__)
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def exporting(cls, environment: Mapping[str, str]) -> "Spans":
        """Export over OTLP; where to, and how, is in the environment that the SDK reads."""
        named = "OTEL_SERVICE_NAME" in environment or "service.name" in environment.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        resource = Resource.create({} if named else {"service.name": _SERVICE})
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def record(self, invocation: Invocation) -> None:
        """Make the span; its parent is the one that the request names, if it names one."""
        began_ns = round(invocation.began_ms * _NS_PER_MS)
        method = invocation.method if invocation.method in _METHODS else "HTTP"
        span = self._tracer.start_span(
            f"{method} {invocation.worker}",
            context=self._parent(invocation),
            kind=SpanKind.SERVER,
            start_time=began_ns,
            attributes=_attributes(invocation),
        )
        if span.is_recording():
            for thrown in invocation.exceptions:
                attributes = {
                    "exception.type": thrown.name,
                    "exception.message": thrown.message,
                    "exception.stacktrace": thrown.stack,
                }
                span.add_event("exception", attributes, thrown.at_ms * _NS_PER_MS)
            if invocation.outcome not in (Outcome.OK, Outcome.CANCELED, Outcome.REFUSED):
                span.set_status(Status(StatusCode.ERROR, invocation.outcome.value))
            elif invocation.status is not None and invocation.status >= 500:
                span.set_status(Status(StatusCode.ERROR))
        span.end(began_ns + round(invocation.wall_ms * _NS_PER_MS))

    def shutdown(self) -> None:
        """Send what is left; blocks while it does."""
        self._provider.shutdown()

    def _parent(self, invocation: Invocation) -> Context:
        carrier = {name: value for name, value in invocation.headers if name in _PARENT_HEADERS}
        return self._propagator.extract(carrier, Context())


def _attributes(invocation: Invocation) -> Mapping[str, AttributeValue]:
    # By hand: urlsplit refuses hosts that a request may name.
    scheme, _, rest = invocation.url.partition("://")
    authority, _, target = rest.partition("/")
    path, _, query = target.partition("?")
    known = invocation.method in _METHODS
    attributes: dict[str, AttributeValue] = {
        "http.request.method": invocation.method if known else "_OTHER",
        "url.scheme": scheme,
        "url.path": f"/{path}",
        "server.address": _PORT.sub("", authority),
        "faas.name": invocation.worker,
        "faas.version": invocation.version,
        "faas.invocation_id": invocation.ray,
        "faas.trigger": "http",
        "belem.outcome": invocation.outcome.value,
        "belem.cpu_ms": invocation.cpu_ms,
        "belem.response_ms": invocation.response_ms,
        "belem.subrequests": invocation.subrequests,
    }
    if query:
        attributes["url.query"] = query
    if invocation.status is not None:
        attributes["http.response.status_code"] = invocation.status
    if invocation.memory_bytes:
        attributes["belem.memory_bytes"] = invocation.memory_bytes
    if invocation.outcome is not Outcome.OK:
        attributes["error.type"] = invocation.outcome.value
    for op, count in invocation.ops.items():
        attributes[f"belem.ops.{op}"] = count
    return attributes
