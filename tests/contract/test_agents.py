"""Strategies among agents of other makers: as sub-agents, and within graphs that have settings of their own."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from deepagents import CompiledSubAgent, create_deep_agent
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm
from tenacity import wait_none

from reflective_agents.graphs import with_settings
from reflective_agents.models.providers import close_models, get_model
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from tests.strategies import ASK, QUESTION, STRATEGIES, Strategy, every_strategy, thread

pytestmark = pytest.mark.matrix(over="strategy")
THREE = ("react", "reflection", "lats")


@pytest.fixture(autouse=True)
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """What strategies read that are called without settings, and no connection left open."""
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("MODEL", "openai:test")
    yield
    await close_models()


def sub_agent(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> CompiledSubAgent:
    """The strategy as it stands. Its settings come from the environment, as for any graph that is called without."""
    for name, value in strategy.settings.items():
        monkeypatch.setenv(f"REFLECT_{name.upper()}", value if isinstance(value, str) else json.dumps(value))
    return {"name": strategy.name, "description": strategy.context.does, "runnable": strategy.graph}


def delegating(names: tuple[str, ...], others: Script) -> Script:
    """A parent that asks each sub-agent the question at once, and says what they answered; `others` answer for them."""

    def reply(request: Request) -> Any:
        if "task" not in request.tools:
            return others(request)
        reports = [message.text for message in request.messages if isinstance(message, ToolMessage)]
        uses = [ToolUse("task", {"description": QUESTION, "subagent_type": name}) for name in names]
        return " | ".join(reports) if reports else uses

    return reply


def reports(result: dict[str, Any]) -> list[str]:
    return [message.text for message in result["messages"] if isinstance(message, ToolMessage)]


@pytest.mark.wire
@every_strategy
async def test_a_sub_agent_reports_its_answer(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIServer(delegating((strategy.name,), strategy.solving)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        parent: Any = create_deep_agent(model=get_model("openai:test"), subagents=[sub_agent(strategy, monkeypatch)])
        result = await parent.ainvoke({"messages": [("user", "Find out.")]})
    [report] = reports(result)
    assert report
    assert "failed" not in report
    assert result["messages"][-1].text == report
    assert len(server.requests) >= 2 + strategy.calls


@pytest.mark.thorough
@pytest.mark.wire
async def test_three_sub_agents_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [strategy for strategy in STRATEGIES if strategy.name in THREE]

    def others(request: Request) -> Reply:
        forms = {"Critique": "reflection", "Judgement": "lats", "Judgements": "lats"}
        name = forms.get(request.schema or "", "reflection")
        script = next(strategy.solving for strategy in chosen if strategy.name == name)
        reply = script(request)
        return reply if isinstance(reply, dict) else AIMessage("Final Answer: It finds mistakes. [alpha]")

    async with OpenAIServer(delegating(tuple(strategy.name for strategy in chosen), others)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        agents = [sub_agent(strategy, monkeypatch) for strategy in chosen]
        parent: Any = create_deep_agent(model=get_model("openai:test"), subagents=agents)
        result = await parent.ainvoke({"messages": [("user", "Find out.")]})
    assert len(reports(result)) == len(THREE)
    assert all("It finds mistakes." in report for report in reports(result))


@every_strategy
async def test_a_parent_is_told_why_a_sub_agent_has_failed(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_MAX_TOTAL_TOKENS", "1")
    model = FakeChatModel(reply=delegating((strategy.name,), strategy.solving))
    monkeypatch.setenv("MODEL", "offline")
    parent: Any = create_deep_agent(model=model, subagents=[sub_agent(strategy, monkeypatch)])
    result = await parent.ainvoke({"messages": [("user", "Find out.")]})
    [report] = reports(result)
    data = json.loads(report)
    assert data["status"] == "failed"
    assert "max_total_tokens" in data["reason"]


# Workers of supervisors, and agents of swarms


def leading(*tools: str) -> Script:
    """A model that calls the tools one after the other, and then says how many it has called."""

    def reply(request: Request) -> Reply:
        done = [message.name for message in request.messages if message.name in tools and message.type == "tool"]
        return ToolUse(tools[len(done)]) if len(done) < len(tools) else f"{len(done)} done."

    return reply


def strategies_in(result: dict[str, Any]) -> list[str]:
    strategies = [message.response_metadata.get("strategy") for message in result["messages"]]
    return [name for name in strategies if name]


def worker_of(strategy: Strategy, name: str = "worker") -> Any:
    model = FakeChatModel(reply=strategy.solving)
    return with_settings(strategy.graph, name=name, model=model, **strategy.settings)


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")  # by langgraph-supervisor
@every_strategy
async def test_a_supervisor_may_let_a_worker_work_twice(strategy: Strategy) -> None:
    model = FakeChatModel(reply=leading("transfer_to_worker", "transfer_to_worker"))
    supervisor = create_supervisor([worker_of(strategy)], model=model).compile()
    result = await supervisor.ainvoke(ASK)
    assert strategies_in(result) == [strategy.name] * 2
    assert result["messages"][-1].text == "2 done."


@pytest.mark.thorough
@every_strategy
async def test_a_swarm_hands_over_to_a_strategy(strategy: Strategy) -> None:
    model = FakeChatModel(reply=leading("transfer_to_worker"))
    host: Any = create_agent(model, [create_handoff_tool(agent_name="worker")], name="host")
    swarm = create_swarm([host, worker_of(strategy)], default_active_agent="host").compile(checkpointer=InMemorySaver())
    result = await swarm.ainvoke(ASK, thread())
    assert strategies_in(result) == [strategy.name]
    again = await swarm.ainvoke(ASK, thread())
    assert strategies_in(again) == [strategy.name] * 2


# Settings of others


class Foreign:
    """What another graph calls its settings."""


@every_strategy
def test_settings_of_another_class_are_misuse(strategy: Strategy) -> None:
    other = next(
        settings_of(candidate.name)
        for candidate in STRATEGIES
        if not issubclass(settings_of(candidate.name), strategy.context)
    )
    for wrong in (Foreign(), other(model="offline")):
        with pytest.raises(Misuse, match=f"a {type(wrong).__name__}, where {strategy.context.__name__} is needed"):
            strategy.graph.invoke(ASK, context=wrong)


@every_strategy
def test_the_schema_of_the_context_documents_every_setting(strategy: Strategy) -> None:
    shown = strategy.graph.get_context_jsonschema()["properties"]
    plain = {name for name, field in strategy.context.model_fields.items() if not field.exclude}
    assert shown.keys() == plain
    assert {name for name, schema in shown.items() if len(schema.get("description", "")) < 20} == set()


def test_what_only_python_can_give_is_documented_too() -> None:
    schemas: list[type[Context]] = [*(strategy.context for strategy in STRATEGIES)]
    fields = {name: field for schema in schemas for name, field in schema.model_fields.items() if field.exclude}
    assert all((field.description or "").startswith("In Python: ") for field in fields.values())
