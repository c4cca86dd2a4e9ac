"""Traces of every invocation through OpenTelemetry: off, unless its variables ask for them.

Nothing of OpenTelemetry is imported while they are off. Sampling, batching, headers and everything
else is set by OpenTelemetry's own variables.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Final

from belem.runtime.server.observability.invocations import Invocations

if TYPE_CHECKING:
    from belem.runtime.server.observability.spans import Spans

__all__ = ["open_traces", "traces_asked_for"]

_SHUTDOWN_SECONDS: Final = 5.0
_PROTOCOL: Final = "http/protobuf"

_log: Final = logging.getLogger("belem.host")


def traces_asked_for(environment: Mapping[str, str]) -> bool:
    """Tell whether OpenTelemetry's variables turn traces on."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter:
        return exporter != "none"
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    return any(environment.get(name) for name in endpoints)


@contextlib.asynccontextmanager
async def open_traces(
    invocations: Invocations, environment: Mapping[str, str] = os.environ
) -> AsyncGenerator[None, None]:
    """Send a span of every invocation for the length of the block, if they are asked for.

    A host runs without traces rather than not at all: what is in their way is logged.
    """
    spans = _start(environment) if traces_asked_for(environment) else None
    if spans is None:
        yield
        return
    stop = invocations.listen_to_all(spans.record)
    try:
        yield
    finally:
        stop()
        await _shut_down(spans)


def _start(environment: Mapping[str, str]) -> "Spans | None":
    hindrance = _hindrance(environment)
    if hindrance is None:
        try:
            from belem.runtime.server.observability.spans import Spans  # not before it is needed

            return Spans.exporting(environment)
        except ImportError as error:
            hindrance = f"{error}. Install what traces need with: pip install 'belem[otel]'"
        except ValueError as error:
            hindrance = f"OpenTelemetry's settings cannot be used: {error}"
    _log.warning("traces_unavailable", extra={"error": hindrance})
    return None


def _hindrance(environment: Mapping[str, str]) -> str | None:
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter not in ("", "otlp"):
        return f"OTEL_TRACES_EXPORTER is {exporter!r}; it can be otlp or none."
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = environment.get(name, "").strip()
        if protocol:
            return None if protocol == _PROTOCOL else f"{name} is {protocol!r}; use {_PROTOCOL}."
    return None


async def _shut_down(spans: "Spans") -> None:
    """Send what is left, for some seconds: a collector that hangs must not hold up the end."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        spans.shutdown()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(done.set)

    # A daemon, and not the loop's executor: that one would be waited for.
    threading.Thread(target=run, name="belem-traces-end", daemon=True).start()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SHUTDOWN_SECONDS):
            await done.wait()
