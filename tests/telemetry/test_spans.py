"""OpenTelemetry: run > step > model call, tool call or memory operation, and nothing left behind."""

import asyncio
import sys
from typing import Any

import pytest
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from tenacity import wait_none

from reflective_agents import telemetry
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.state.context import Context
from reflective_agents.state.errors import EmptyQuestion
from reflective_agents.state.run import RunState
from reflective_agents.telemetry.spans import RUNS, tracer
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Request
from tests.strategies import ASK, STRATEGIES, Strategy, every_strategy, thread
from tests.telemetry.conftest import Spans

BY_NAME = {strategy.name: strategy for strategy in STRATEGIES}


def make(strategy: Strategy, **settings: Any) -> Context:
    return strategy.make(**{"model": FakeChatModel(reply=strategy.solving), **settings})


def parents(spans: list[ReadableSpan]) -> dict[str, set[str]]:
    """The names of the spans above those of a name; "" where there is none."""
    names = {span.context.span_id: span.name for span in spans if span.context}
    found: dict[str, set[str]] = {}
    for span in spans:
        found.setdefault(span.name, set()).add(names[span.parent.span_id] if span.parent else "")
    return found


def attributes(spans: list[ReadableSpan], name: str) -> list[dict[str, Any]]:
    return [dict(span.attributes or {}) for span in spans if span.name == name]


@every_strategy
async def test_calls_lie_in_steps_and_steps_in_the_run(strategy: Strategy, spans: Spans) -> None:
    result = await strategy.with_memory().ainvoke(ASK, thread(), context=make(strategy))
    above = parents(spans())
    run = f"invoke_agent {strategy.name}"
    assert above[run] == {""}
    assert above["step finish"] >= {run}
    lies_in = {"invoke_agent": {"step", "invoke_agent"}, "step": {"invoke_agent"}}
    for name, places in above.items():
        assert name == run or {parent.split()[0] for parent in places} <= lies_in.get(name.split()[0], {"step"})
    assert len(attributes(spans(), "chat FakeChatModel")) == result["usage"]["model_calls"]
    assert len({span.context.trace_id for span in spans() if span.context}) == 1
    assert RUNS._chains == {}


async def test_attributes_are_those_of_the_conventions(spans: Spans) -> None:
    strategy = BY_NAME["lats"]
    await strategy.with_memory().ainvoke(ASK, thread(), context=make(strategy))
    [run] = attributes(spans(), "invoke_agent lats")
    run_id = run.pop("reflect.run_id")
    common = {"gen_ai.agent.name": "lats", "gen_ai.conversation.id": "t"}
    assert run == {**common, "gen_ai.operation.name": "invoke_agent"}
    call = attributes(spans(), "chat FakeChatModel")[0]
    assert call.pop("gen_ai.usage.input_tokens") > 0
    assert call.pop("gen_ai.usage.output_tokens") > 0
    assert call == {
        **common,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "fake",
        "gen_ai.request.choice.count": 1,
        "gen_ai.request.model": "FakeChatModel",
        "reflect.answers": 1,
        "reflect.messages": call["reflect.messages"],
        "reflect.outcome": "ok",
        "reflect.run_id": run_id,
        "reflect.step": "start",
    }
    tool = attributes(spans(), "execute_tool search")[0]
    assert (tool["gen_ai.tool.name"], tool["gen_ai.operation.name"]) == ("search", "execute_tool")


async def test_a_strategy_in_another_is_a_run_in_a_step(spans: Spans) -> None:
    await BY_NAME["trials"].graph.ainvoke(ASK, context=make(BY_NAME["trials"]))
    assert parents(spans())["invoke_agent react"] == {"step attempt"}


def test_invoke_gives_the_same_spans(spans: Spans) -> None:
    BY_NAME["trials"].graph.invoke(ASK, context=make(BY_NAME["trials"]))
    above = parents(spans())
    assert above["invoke_agent trials"] == {""}
    assert above["invoke_agent react"] == {"step attempt"}


async def test_runs_at_once_are_traces_of_their_own(spans: Spans) -> None:
    strategy = BY_NAME["reflexion"]
    model = FakeChatModel(reply=strategy.solving, latency=0.005)
    await asyncio.gather(*(strategy.graph.ainvoke(ASK, context=make(strategy, model=model)) for _ in range(4)))
    traces: dict[int, set[Any]] = {}
    for span in spans():
        assert span.context
        assert span.attributes
        traces.setdefault(span.context.trace_id, set()).add(span.attributes["reflect.run_id"])
    assert len(traces) == 4
    assert all(len(runs) == 1 for runs in traces.values())


async def test_a_run_lies_in_the_span_of_the_application_which_stays_current(spans: Spans) -> None:
    strategy = BY_NAME["reflection"]
    tracer = trace.get_tracer_provider().get_tracer("application")
    with tracer.start_as_current_span("request") as request:
        async for _ in strategy.graph.astream(ASK, context=make(strategy)):
            assert trace.get_current_span() is request
        assert trace.get_current_span() is request
    assert parents(spans())["invoke_agent reflection"] == {"request"}


async def test_other_chains_of_the_application_give_no_spans(spans: Spans) -> None:
    graph = RunnableLambda(lambda ask: BY_NAME["reflection"].graph.invoke(ask, context=make(BY_NAME["reflection"])))
    chain = RunnableLambda(lambda text: text) | RunnableLambda(lambda text: ASK) | graph
    await chain.ainvoke("Hello")
    assert {span.name.split()[0] for span in spans()} == {"invoke_agent", "step", "chat"}
    assert parents(spans())["invoke_agent reflection"] == {""}
    assert RUNS._chains == {}


# How they end


def status(spans: list[ReadableSpan], name: str) -> list[tuple[str, str | None]]:
    return [(span.status.status_code.name, span.status.description) for span in spans if span.name == name]


async def test_a_failure_is_marked_with_its_class_and_without_its_text(
    spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    model = FakeChatModel(reply=lambda request: ModelRateLimitError("busy: sk-planted"))
    await BY_NAME["reflection"].graph.ainvoke(ASK, context=make(BY_NAME["reflection"], model=model))
    assert status(spans(), "chat FakeChatModel") == [("ERROR", "ModelRateLimitError")] * 3
    assert attributes(spans(), "chat FakeChatModel")[0]["error.type"] == "ModelRateLimitError"
    assert status(spans(), "invoke_agent reflection") == [("UNSET", None)]
    assert "planted" not in "".join(span.to_json() for span in spans())


async def test_misuse_ends_the_run_as_failed(spans: Spans) -> None:
    with pytest.raises(EmptyQuestion):
        await BY_NAME["reflection"].graph.ainvoke({"messages": [("user", " ")]}, context=make(BY_NAME["reflection"]))
    assert status(spans(), "invoke_agent reflection") == [("ERROR", "EmptyQuestion")]
    assert RUNS._chains == {}


async def test_a_cancelled_run_is_ended_too(spans: Spans) -> None:
    sent = asyncio.Event()

    def latency(_: Request) -> float:
        sent.set()
        return 30

    model = FakeChatModel(reply=lambda request: "late", latency=latency)
    task = asyncio.create_task(BY_NAME["trials"].graph.ainvoke(ASK, context=make(BY_NAME["trials"], model=model)))
    await sent.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [span["reflect.outcome"] for span in attributes(spans(), "chat FakeChatModel")] == ["cancelled"]
    assert len(attributes(spans(), "invoke_agent trials")) == len(attributes(spans(), "invoke_agent react")) == 1
    assert RUNS._chains == {}


async def test_waiting_for_a_person_ends_a_span_and_the_answer_begins_another(spans: Spans) -> None:
    async def remember(_: Any, __: Step[Context]) -> Update:
        with telemetry.memory_operation("confirm"):
            return {"answer": interrupt("May I?")}

    builder: Any = StateGraph(RunState, context_schema=Context)
    graph = builder.add_node("remember", node(Context)(remember)).add_edge(START, "remember")
    graph = graph.compile(checkpointer=InMemorySaver(), name="own")
    await graph.ainvoke({"messages": [("user", "Hello")], "run_id": "r1"}, thread())
    assert status(spans(), "invoke_agent own") == [("UNSET", None)]
    await graph.ainvoke(Command(resume="yes"), thread())
    assert [span["reflect.outcome"] for span in attributes(spans(), "memory confirm")] == ["paused", "ok"]
    assert parents(spans())["memory confirm"] == {"step remember"}
    assert [span["reflect.run_id"] for span in attributes(spans(), "invoke_agent own")] == ["r1", "r1"]


# Whether there are any


def test_there_are_none_by_default() -> None:
    assert tracer() is None


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "console"},
        {"OTEL_SERVICE_NAME": "mine"},
    ],
)
def test_these_variables_ask_for_none(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    telemetry.configure()
    assert tracer() is None


def test_a_disabled_application_has_none(spans: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracer() is not None
    monkeypatch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)
    assert tracer() is None


def test_without_the_library_the_variables_are_for_other_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    telemetry.configure()
    assert tracer() is None


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_TRACES_EXPORTER": "smoke"},
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"},
    ],
)
def test_an_exporter_that_is_not_installed_is_named(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.warns(UserWarning, match="smoke|pigeon"):
        telemetry.configure()
