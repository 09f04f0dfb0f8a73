"""Requests as spans of OpenTelemetry."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from harken.server import app, traces
from tests.server.resources.asking import Asking
from tests.server.serving import Served

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_request_is_a_span_below_that_of_its_sender(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(app, "tracer_of_environment", lambda: provider.get_tracer("tests"))
    served = Served(path)
    Asking(served).post("/transactions", {}, traceparent=PARENT, x_request_id="mine")
    served.stop()
    (span,) = spans.get_finished_spans()
    assert span.name == "POST /api/v1/transactions"
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1]
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 200
    assert span.attributes["harken.request"] == "mine"
    provider.shutdown()


def test_nothing_is_traced_unless_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in traces.VARIABLES:
        monkeypatch.delenv(each, raising=False)
    assert traces.tracer_of_environment() is None
