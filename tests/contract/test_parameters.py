"""Parameters of the models and tools of one's own: what a setting does to the requests as they are sent."""

from typing import Any

import pytest

from reflective_agents.graphs import graph_of
from reflective_agents.state import policy
from reflective_agents.state.context import Context
from reflective_agents.state.errors import OperatorOnly
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies import ASK, Strategy, every_strategy

JUDGING = {"Critique", "Delegation", "Judgement", "Judgements", "SupportCheck", "Usefulness", "Verdict"}
"""Forms that judges and critics fill in."""


@pytest.mark.wire
@every_strategy
async def test_temperatures_and_parameters_are_sent(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    heat = {
        "temperature": 0.9,
        "judge_temperature": 0.1,
        "model_parameters": {"top_p": 0.5, "extra_body": {"min_p": 0.2}},
    }
    if not settings_of(strategy.name)().judges:
        del heat["judge_temperature"]
    async with OpenAIServer(strategy.solving) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        result = await strategy.graph.ainvoke(ASK, context=strategy.make(model="openai:test", **heat))
    assert result["answer"]
    for call, exchange in zip(server.calls, server.requests, strict=True):
        body = exchange.body
        assert body["temperature"] == (0.1 if call.schema in JUDGING else 0.9)
        assert (body["top_p"], body["min_p"]) == (0.5, 0.2)


@pytest.mark.wire
async def test_without_the_settings_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIServer(lambda _: "Because.") as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        settings = {"model": "openai:test", "max_rounds": 1, "critic": "checks"}
        await graph_of("reflection").ainvoke(ASK, context=settings)
    assert not {"temperature", "top_p"} & server.requests[0].body.keys()


@pytest.mark.wire
async def test_what_openai_does_not_have_is_sent_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIServer(lambda _: "Because.") as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        parameters = {"top_k": 3, "repeat_penalty": 1.1, "min_p": 0.1, "extra_body": {"min_p": 0.2}}
        settings = {"model": "openai:test", "model_parameters": parameters, "samples": 1}
        result = await graph_of("chain_of_thought").ainvoke(ASK, context=settings)
    assert result["answer"] == "Because."
    body = server.requests[0].body
    assert (body["top_k"], body["repeat_penalty"], body["min_p"]) == (3, 1.1, 0.2)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"temperature": 0.5}, "set temperature instead of temperature"),
        ({"max_tokens": 9}, "set max_answer_tokens instead of max_tokens"),
        ({"n": 3}, "n is the strategy's"),
        ({"metadata": {"a": "b"}}, "metadata belongs to the run's configuration"),
        ("{", "not valid JSON"),
    ],
)
def test_what_a_strategy_decides_is_no_parameter(given: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Context.model_validate({"model_parameters": given})


@pytest.mark.parametrize(
    ("parameters", "allowed"), [({"top_p": 0.5, "seed": 1}, True), ({"extra_headers": {"X": "1"}}, False)]
)
async def test_on_a_server_only_sampling_is_the_callers(
    parameters: dict[str, Any], allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "_check", None)
    policy.serve_others()
    graph: Any = graph_of("reflection")
    run = graph.ainvoke(ASK, context={"model": "offline", "model_parameters": parameters, "temperature": 0.2})
    if allowed:
        assert (await run)["answer"]
        return
    with pytest.raises(OperatorOnly, match="model_parameters"):
        await run


# Tools of one's own


def population(city: str) -> str:
    """Return the number of people in a city."""
    return f"{city}: 2,102,650"


def counting(request: Request) -> Reply:
    """Ask the tool wherever it is offered and not asked yet, and answer with what it says."""
    results = [
        str(message.text) for message in request.messages if message.type == "tool" and "2,102,650" in message.text
    ]
    if request.schema == "Judgement":
        return {"reasoning": "Good.", "score": 0.9, "solved": True}
    if request.schema == "Judgements":
        return {
            "judgements": [{"reasoning": "Good.", "score": 0.9, "solved": True}] * request.last.count("<candidate ")
        }
    if request.schema == "Plan":
        return {"subgoals": [{"id": "1", "goal": "Count", "needs": []}]}
    missing = {"missing": "the number", "superfluous": "", "complete": False}
    form: dict[str, Any] = {"reflection": missing, "search_queries": ["people in Paris"]}
    if request.schema == "AnswerQuestion":
        return {"answer": "Many people.", **form}
    if request.schema == "ReviseAnswer":
        assert "tool:population/0.1" in request.text
        complete = {"missing": "", "superfluous": "", "complete": True}
        return {"answer": "2,102,650 people [1].", "reflection": complete, "search_queries": []}
    if "population" in request.tools and request.tool_choice != "none" and not results:
        return ToolUse("population", {"city": "Paris"})
    return f"Answer: {(results or ['2,102,650'])[-1]}"


TAKING = ("auto", "react", "lats", "tree_of_thoughts", "ab_mcts", "best_of_n", "reflexion", "plan", "trials")


@pytest.mark.parametrize("strategy", TAKING)
async def test_every_strategy_that_acts_takes_tools(strategy: str) -> None:
    model = FakeChatModel(reply=counting)
    graph: Any = graph_of(strategy)
    result = await graph.ainvoke(ASK, context={"model": model, "search": "none", "tools": [population]})
    assert "2,102,650" in result["answer"]
    assert result["usage"]["tool_calls"] >= 1


@pytest.mark.parametrize("tools", ["population", [7], {"name": "population"}])
async def test_what_is_no_tool_is_refused(tools: object) -> None:
    graph: Any = graph_of("lats")
    with pytest.raises(ValueError, match="tools are a list of LangChain's tools, or of functions"):
        await graph.ainvoke(ASK, context={"model": "offline", "tools": tools})
