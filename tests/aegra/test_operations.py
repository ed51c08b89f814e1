"""What the operator of `make serve` sees: one trace, a few lines of the log, and figures for Prometheus."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.aegra.conftest import Start
from tests.aegra.process import KEYS, Server
from tests.support.collector import Collector
from tests.support.needs import ROOT

pytestmark = [pytest.mark.aegra, pytest.mark.thorough, pytest.mark.timeout(300)]

METRICS_KEY = "a key of the operator's"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "Why is reflection useful?"}]}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector().threaded() as collector:
        yield collector


@pytest.fixture(scope="module")
def watched(servers: list[Server], settings: dict[str, str], start: Start, collector: Collector) -> Iterator[Server]:
    """Start a process that is watched, with a queue of its own."""
    server = start(
        REDIS_URL=settings["REDIS_URL"].replace("/0", "/3"),
        REFLECT_METRICS_KEY=METRICS_KEY,
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.address,
        OTEL_BSP_SCHEDULE_DELAY="200",
    )
    server.wait_until_ready()
    yield server
    server.end()


def post(server: Server, path: str, body: Mapping[str, Any], **headers: str) -> httpx.Response:
    sent = {"authorization": f"Bearer {KEYS['ann']}", **headers}
    return httpx.post(server.address + path, json=body, headers=sent, timeout=60)


def metrics(server: Server) -> dict[str, float]:
    """Return the samples at /metrics by name and labels, as they are written there."""
    answer = httpx.get(f"{server.address}/metrics", headers={"authorization": f"Bearer {METRICS_KEY}"})
    assert answer.status_code == 200
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


@pytest.mark.parametrize("native", [False, True])
def test_a_request_is_one_trace(watched: Server, collector: Collector, native: bool) -> None:
    collector.bodies.clear()
    path, body = "/v1/chat/completions", QUESTION | {"model": "chain_of_thought"}
    if native:
        path = "/runs/wait"
        body = {"assistant_id": "chain_of_thought", "input": QUESTION}
    assert post(watched, path, body, traceparent=f"00-{TRACE}-{CALLER}-01").status_code == 200
    deadline = time.monotonic() + 20
    while not any(span.name == "invoke_agent chain_of_thought" for span in collector.spans):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(0.5)
    spans = [span for span in collector.spans if not span.name.startswith("GET")]  # /health
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    above = {span.span_id: span for span in spans}

    def way_up(span: Span) -> list[str]:
        return [span.name, *(way_up(above[span.parent_span_id]) if span.parent_span_id in above else [])]

    [call] = [span for span in spans if span.name == "chat test"]
    assert way_up(call) == ["chat test", "step sample", "invoke_agent chain_of_thought", f"POST {path}"]
    [request] = [span for span in spans if span.name.startswith("POST")]
    assert request.parent_span_id.hex() == CALLER


def test_metrics_count_what_runs_report(watched: Server) -> None:
    before = metrics(watched)
    answer = post(watched, "/v1/chat/completions", {"model": "reflection", "settings": {"max_rounds": 1}, **QUESTION})
    refused = post(watched, "/v1/chat/completions", {"model": "reflection", "settings": {"max_round": 1}, **QUESTION})
    foreign = post(watched, "/runs/wait", {"assistant_id": "lats", "input": QUESTION, "context": {"corpus": "/etc"}})
    assert (answer.status_code, refused.status_code, foreign.status_code) == (200, 400, 403)
    after = metrics(watched)
    more = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    usage = answer.json()["usage"]
    mine = 'strategy="reflection"'
    assert more[f"reflect_model_calls_total{{{mine}}}"] == usage["model_calls"]
    assert more[f"reflect_tokens_total{{{mine}}}"] == usage["total_tokens"]
    assert more[f"reflect_run_seconds_count{{{mine}}}"] == 1
    assert sum(value for name, value in more.items() if name.startswith("reflect_runs_total")) == 1
    refusals = {name: value for name, value in more.items() if name.startswith("reflect_refusals_total")}
    assert refusals == {
        'reflect_refusals_total{status="400",strategy="reflection"}': 1,
        'reflect_refusals_total{status="403",strategy="lats"}': 1,
    }


def test_metrics_are_the_operators(watched: Server, servers: list[Server]) -> None:
    for key in (KEYS["ann"], "", "nobody's"):
        headers = {"authorization": f"Bearer {key}"} if key else {}
        assert httpx.get(f"{watched.address}/metrics", headers=headers).status_code == 401
    assert httpx.get(f"{servers[0].address}/metrics").status_code == 404


def test_the_board_asks_for_metrics_that_there_are(watched: Server) -> None:
    names = {name.partition("{")[0] for name in metrics(watched)}
    board = json.loads((ROOT / "docs/grafana.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    wanted = {name for query in queries for name in re.findall(r"\b(?:reflect|process|aegra)_\w+", query)}
    assert wanted
    assert wanted <= names


@pytest.mark.parametrize("model", ["chain_of_thought", "lats"])
def test_a_run_is_a_few_lines_of_json(watched: Server, model: str) -> None:
    before = len(watched.log.read_text().splitlines())
    answer = post(watched, "/v1/chat/completions", {"model": model, "settings": {"max_model_calls": 9}, **QUESTION})
    assert answer.status_code == 200
    time.sleep(1)
    text = watched.log.read_text()
    assert "\x1b" not in text
    lines = [json.loads(line) for line in text.splitlines()[before:] if line.startswith("{")]
    # Whatever holds the loop of a busy machine is told, too.
    lines = [line for line in lines if line["logger"] != "reflect.loop"]
    assert 2 <= len(lines) <= 5
    [end] = [line for line in lines if line.get("event") == "end"]
    [access] = [line for line in lines if line.get("url") == "/v1/chat/completions"]
    assert (end["run_id"], end["request_id"]) == (access["run_id"], access["request_id"])
    assert end["model_calls"] == answer.json()["usage"]["model_calls"]
    assert access["status"] == 200
