"""Fixtures that switch logs and spans on for a test, and off after it."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from reflective_agents import telemetry

Line = dict[str, Any]
Lines = Callable[[], list[Line]]
Spans = Callable[[], list[ReadableSpan]]


@pytest.fixture(autouse=True)
def switched_off(clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin and end each test with neither logs nor spans."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    telemetry.configure()
    yield
    monkeypatch.undo()
    for name in [name for name in os.environ if name.startswith(("OTEL_", "REFLECT_LOG"))]:
        del os.environ[name]
    telemetry.configure()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Lines:
    """Log to a file; the fixture is a function that ends that and returns the lines."""
    path = tmp_path / "run.log"
    monkeypatch.setenv("REFLECT_LOG", str(path))
    telemetry.configure()

    def read() -> list[Line]:
        monkeypatch.delenv("REFLECT_LOG", raising=False)
        telemetry.configure()
        return [json.loads(line) for line in path.read_text().splitlines()]

    return read


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """Trace with a provider of the application; the fixture is a function that returns the spans so far."""
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return lambda: list(kept.get_finished_spans())
