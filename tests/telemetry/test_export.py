"""Over the wire: spans to an OTLP receiver, runs to LangSmith, both and the log at the end of a process; no secrets."""

import asyncio
import email
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tenacity import wait_none

from reflective_agents import telemetry
from reflective_agents.models.providers import close_models
from reflective_agents.testing.completions import Json
from reflective_agents.testing.faults import STATUS_ERRORS, Fault
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from reflective_agents.testing.serve import LocalServer
from reflective_agents.testing.tavily_server import TavilyServer
from tests.strategies import ASK, Strategy, every_strategy
from tests.support.collector import Collector
from tests.telemetry.conftest import Lines

ROOT = Path(__file__).parents[2]
QUESTION = "Why is reflection useful in AI?"


class LangSmith(LocalServer):
    """Receives runs as LangSmith does."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[str] = set()
        self.bodies: list[bytes] = []
        self.runs: dict[str, dict[str, Any]] = {}

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/info", self._info), web.post("/runs/multipart", self._receive)]

    async def _info(self, _: web.Request) -> web.Response:
        return web.json_response({})

    async def _receive(self, http: web.Request) -> web.Response:
        self.keys.add(http.headers["x-api-key"])
        self.bodies.append(body := await http.read())
        head = f"Content-Type: {http.headers['Content-Type']}\r\n\r\n".encode()
        for part in email.message_from_bytes(head + body).walk():
            name = part.get_param("name", header="content-disposition")
            if name:
                operation, run_id, *field = str(name).split(".")
                content = part.get_payload(decode=True)
                assert isinstance(content, bytes)
                if operation == "post":
                    found = {field[0]: json.loads(content)} if field else json.loads(content)
                    self.runs.setdefault(run_id, {}).update(found)
        return web.json_response({})


# Secrets

KEYS = {"OPENAI_API_KEY": "sk-planted-environment", "TAVILY_API_KEY": "tvly-planted-environment"}
IN_A_FAULT = "sk-planted-in-a-fault"
IN_A_QUERY = "https://example.com/?api_key=sk-planted-in-a-query"


def leaking(script: Script) -> Script:
    """The same model, which writes an address with a key into all it says."""

    def reply(request: Request) -> Reply:
        reply: Any = script(request)
        if isinstance(reply, ToolUse) and isinstance(reply.args, dict):
            return ToolUse(reply.name, {name: f"{value} {IN_A_QUERY}" for name, value in reply.args.items()})
        if isinstance(reply, dict) and reply.get("search_queries"):
            return {**reply, "search_queries": [f"{query} {IN_A_QUERY}" for query in reply["search_queries"]]}
        changed: Reply = f"{reply} {IN_A_QUERY}" if isinstance(reply, str) else reply
        return changed

    return reply


def fault(_: Json, count: int) -> Fault | None:
    """Two calls succeed, the second attempt of the first and the next; then the key is refused."""
    return "500" if count == 0 else "401" if count > 2 else None


@pytest.fixture
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Keys, a provider that repeats a key when it refuses it, and retries that do not wait."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    refusal = ("invalid_request_error", f"Incorrect API key provided: {IN_A_FAULT}")
    monkeypatch.setitem(STATUS_ERRORS, "401", refusal)
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    yield
    await close_models()


@pytest.mark.matrix(keep=2)
@pytest.mark.wire
@pytest.mark.usefixtures("provider")
@every_strategy
async def test_no_key_is_told(strategy: Strategy, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    script = leaking(strategy.endless)
    with Collector().threaded() as collector:
        monkeypatch.setenv("REFLECT_LOG_LEVEL", "DEBUG")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        telemetry.configure()
        async with (
            OpenAIServer(script, faults=fault) as server,
            TavilyServer(fault=lambda _, count: "401" if count else None) as searches,
        ):
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("TAVILY_BASE_URL", searches.url)
            settings = {"search": "tavily"} if strategy.searches else {}
            result = await strategy.with_memory().ainvoke(
                ASK, {"configurable": {"thread_id": "t"}}, context=strategy.make(model="openai:test", **settings)
            )
        monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT")
        got = await asyncio.to_thread(lines)
    everything = json.dumps(got).encode() + b"".join(collector.bodies)
    assert next(line["http_status"] for line in got if line["logger"] == "reflect.model") == 500
    was_refused = any(exchange.fault == "401" for exchange in server.requests)  # a run of two calls ends before
    assert IN_A_FAULT in result["outcome"]["reason"] or not (was_refused and strategy.endless_calls)
    assert b"gen_ai.request.model" in everything
    assert [secret for secret in (b"planted", b"example.com") if secret in everything] == []


# At the end of a process


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a strategy by the command, offline, with variables of the environment."""

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        command = [
            sys.executable,
            "-m",
            "reflective_agents.cli",
            "run",
            "trials",
            QUESTION,
            "--thread",
            "mine",
            "--max-trials",
            "1",
        ]
        environment = {**os.environ, **KEYS, "MODEL": "offline", "REFLECT_SEARCH": "local", **variables}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)

    return run


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.process
def test_log_spans_and_runs_are_complete_when_the_command_ends(
    run_command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    with Collector().threaded() as collector, LangSmith().threaded() as langsmith:
        run_command(
            REFLECT_LOG=str(tmp_path / "run.log"),
            OTEL_TRACES_EXPORTER="otlp",
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.address,
            OTEL_SERVICE_NAME="mine",
            LANGSMITH_TRACING="true",
            LANGSMITH_API_KEY="ls-planted",
            LANGSMITH_ENDPOINT=langsmith.address,
        )
    lines = [json.loads(line) for line in (tmp_path / "run.log").read_text().splitlines()]
    assert [line["event"] for line in lines if line["strategy"] == "trials"][-1] == "end"
    assert {line["thread_id"] for line in lines} == {"mine"}
    calls = [line for line in lines if line["logger"] == "reflect.model"]
    check_spans(collector, calls)
    check_runs(langsmith, calls)


def check_spans(collector: Collector, calls: list[Any]) -> None:
    """The spans are one tree, of the service that the environment names, with a span for each call."""
    names = {span.span_id: span.name for span in collector.spans}
    above = {span.name: names.get(span.parent_span_id, "") for span in collector.spans}
    assert above["invoke_agent trials"] == ""
    assert above["step attempt"] == "invoke_agent trials"
    assert above["invoke_agent react"] == "step attempt"
    assert above["step think"] == "invoke_agent react"
    assert above["execute_tool search"] == "step act"
    assert [span.name for span in collector.spans].count("chat offline") == len(calls) > 0
    assert collector.services == {"mine"}


def check_runs(langsmith: LangSmith, calls: list[Any]) -> None:
    """The runs are one tree with sensible names and the thread's id; no key of ours is in them."""
    runs = langsmith.runs
    [root] = [run for run in runs.values() if not run.get("parent_run_id")]
    assert (root["name"], root["run_type"], root["extra"]["metadata"]["thread_id"]) == ("trials", "chain", "mine")
    assert {run["trace_id"] for run in runs.values()} == {root["id"]}
    assert all(run["id"] == run_id and run["parent_run_id"] in runs for run_id, run in runs.items() if run is not root)
    kinds = [run["run_type"] for run in runs.values()]
    assert kinds.count("llm") == len(calls)
    assert {run["name"] for run in runs.values()} >= {"trials", "attempt", "react", "think", "search", "evaluate"}
    assert langsmith.keys == {"ls-planted"}
    assert b"planted" not in b"".join(langsmith.bodies)


@pytest.mark.thorough
@pytest.mark.process
def test_without_the_variables_no_exporter_is_loaded_and_nobody_is_called() -> None:
    script = f"""
import socket, sys, threading
socket.socket.connect = socket.create_connection = lambda *_: sys.exit("a connection")
from reflective_agents.graphs.trials import graph
graph.invoke({{"messages": [("user", "{QUESTION}")]}})
exporters = ("opentelemetry.exporter", "opentelemetry.sdk.trace.export")
print([name for name in sys.modules if name.startswith(exporters)])
print(*[thread.name for thread in threading.enumerate()])
"""
    environment = {**os.environ, "MODEL": "offline", "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    loaded, threads = run.stdout.splitlines()
    assert loaded == "[]"
    assert [name for name in threads.split() if not re.match("MainThread|reflect-|asyncio_|corpus_", name)] == []
    assert run.stderr == ""
