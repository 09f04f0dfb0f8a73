"""OpenTelemetry traces of requests, if the environment asks for them.

They are sent where `OTEL_EXPORTER_OTLP_ENDPOINT` says, by HTTP; the other variables of
OpenTelemetry count as well. A request whose sender traces it, too (`traceparent`), is part of that
trace. Without the variable nothing of OpenTelemetry is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.types import Scope

from harken.packages import needs

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
NAME = "harken"


def tracer_of_environment() -> Tracer | None:
    """None if nobody wants traces."""
    if not any(os.environ.get(each) for each in VARIABLES):
        return None
    with needs("telemetry"):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        name = os.environ.get("OTEL_SERVICE_NAME", NAME)
        provider = TracerProvider(resource=Resource.create({"service.name": name}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider.get_tracer(NAME)


@contextmanager
def request_span(tracer: Tracer, scope: Scope, id: str) -> Iterator[Any]:
    """The span of a request, below that of its sender."""
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    names = (b"traceparent", b"tracestate", b"baggage")
    carrier = {
        name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in names
    }
    method = scope.get("method", "WEBSOCKET")
    with tracer.start_as_current_span(
        f"{method} {scope['path']}", context=extract(carrier), kind=SpanKind.SERVER
    ) as span:
        span.set_attribute("http.request.method", method)
        span.set_attribute("url.path", scope["path"])
        span.set_attribute("harken.request", id)
        yield span
