"""Tools that the caller carries out: a run waits for their results, and goes on with them."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError

from reflective_agents.graphs import graph_of
from reflective_agents.graphs.react import builder
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request, ToolUse

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: dict[str, Any] = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
ASK: dict[str, Any] = {"messages": [("user", "How warm is it in Oslo and in Rome?")]}
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
OSLO, ROME = ToolUse("weather", {"city": "Oslo"}), ToolUse("weather", {"city": "Rome"})


def results(request: Request) -> list[str]:
    return [str(message.text) for message in request.messages if isinstance(message, ToolMessage)]


def both_cities(request: Request) -> Reply:
    """Ask for both cities at once, then answer with what was found."""
    found = results(request)
    return " and ".join(found) if found else [OSLO, ROME]


def context(script: Any = both_cities, **settings: Any) -> Any:
    return {"model": FakeChatModel(reply=script), "search": "none", "client_tools": [WEATHER], **settings}


def calls_of(result: Any) -> list[dict[str, Any]]:
    return [call for waiting in result["__interrupt__"] for call in waiting.value["tool_calls"]]


async def test_calls_of_one_message_are_asked_for_together() -> None:
    graph = builder.compile(checkpointer=InMemorySaver())
    waiting = await graph.ainvoke(ASK, CONFIG, context=context())
    calls = calls_of(waiting)
    assert [(call["name"], call["args"]) for call in calls] == [
        ("weather", {"city": city}) for city in ("Oslo", "Rome")
    ]
    given = [{"tool_call_id": call["id"], "content": f"{call['args']['city']}: 20"} for call in calls]
    done = await graph.ainvoke(Command(resume=given), CONFIG, context=context())
    assert done["answer"] == "Oslo: 20 and Rome: 20"
    assert done["usage"]["model_calls"] == 2
    assert done["usage"]["tool_calls"] == 2


async def test_tools_of_its_own_run_once_and_after_the_wait() -> None:
    ran: list[str] = []

    @tool
    def note(text: str) -> str:
        """Write a note."""
        ran.append(text)
        return "noted"

    def script(request: Request) -> Reply:
        return " ".join(results(request)) or [ToolUse("note", {"text": "warm"}), OSLO]

    settings = context(script, tools=[note])
    graph = builder.compile(checkpointer=InMemorySaver())
    assert len(calls_of(await graph.ainvoke(ASK, CONFIG, context=settings))) == 1
    assert not ran
    done = await graph.ainvoke(Command(resume="20 degrees"), CONFIG, context=settings)
    assert ran == ["warm"]
    assert sorted(done["answer"].split(" ", 1)) == [["20", "degrees noted"][0], "degrees noted"]


async def test_a_tool_that_has_to_be_called_is_called_or_the_run_fails() -> None:
    def reluctant(request: Request) -> Reply:
        assert request.tools == ("weather",)
        return OSLO if "has to be called: weather" in request.text else "I would rather not."

    graph = builder.compile(checkpointer=InMemorySaver())
    waiting = await graph.ainvoke(ASK, CONFIG, context=context(reluctant, call_client_tool=True, search="local"))
    assert [call["args"] for call in calls_of(waiting)] == [{"city": "Oslo"}]
    assert waiting["usage"]["parse_failures"] == 1
    free = context(lambda _: "So.", call_client_tool=False)
    assert (await graph.ainvoke(Command(resume="20 degrees"), CONFIG, context=free))["answer"] == "So."
    refusing = await builder.compile().ainvoke(ASK, context=context(lambda _: "No.", call_client_tool=True))
    assert (refusing["answer"], refusing["outcome"]["status"]) == (None, "failed")


async def test_of_several_calls_the_first_is_made_where_the_client_takes_one() -> None:
    graph = builder.compile(checkpointer=InMemorySaver())
    waiting = await graph.ainvoke(ASK, CONFIG, context=context(parallel_calls=False))
    assert [call["args"] for call in calls_of(waiting)] == [{"city": "Oslo"}]


@pytest.mark.parametrize("settings", [{"call_client_tool": True}, {"parallel_calls": False}])
async def test_how_tools_are_called_is_set_with_tools(settings: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match="with client_tools"):
        await builder.compile().ainvoke(ASK, context={"model": "offline", **settings})


async def test_a_call_written_as_text() -> None:
    def script(request: Request) -> Reply:
        return (
            "Final Answer: 20" if "20 degrees" in request.text else 'Thought: Look.\nAction: weather[{"city": "Oslo"}]'
        )

    graph = builder.compile(checkpointer=InMemorySaver())
    settings = context(script, acting="paper")
    assert calls_of(await graph.ainvoke(ASK, CONFIG, context=settings))[0]["args"] == {"city": "Oslo"}
    done = await graph.ainvoke(Command(resume="20 degrees"), CONFIG, context=settings)
    assert done["answer"] == "20"


@pytest.mark.parametrize("given", [[], [{"tool_call_id": "another", "content": "20"}], [{"content": 7}], None, 5])
async def test_a_call_without_a_result_is_an_error_for_the_model(given: Any) -> None:
    def script(request: Request) -> Reply:
        return " ".join(results(request)) or OSLO

    graph = builder.compile(checkpointer=InMemorySaver())
    waiting = await graph.ainvoke(ASK, CONFIG, context=context(script))
    resume = {waiting["__interrupt__"][0].id: given}
    done = await graph.ainvoke(Command(resume=resume), CONFIG, context=context(script))
    assert done["answer"] == "The tool weather gave no result. Try something else."


async def test_declarations_are_kept_for_a_run_that_is_resumed_without_settings() -> None:
    graph = builder.compile(checkpointer=InMemorySaver())
    waiting = await graph.ainvoke(ASK, CONFIG, context=context())
    assert waiting["settings"]["client_tools"] == [WEATHER] if "settings" in waiting else True
    kept = (await graph.aget_state(CONFIG)).values["settings"]
    assert kept["client_tools"] == [WEATHER]


def planning(request: Request) -> Reply | None:
    """Plan two parts, or send both members to work, and accept what they report."""
    if request.schema == "Plan":
        return {"subgoals": [{"id": str(n), "goal": f"Look {n} times", "needs": []} for n in (1, 2)]}
    if request.schema == "Delegation":
        done = "20 degrees" in request.last
        tasks = [] if done else [{"to": name, "task": "Look."} for name in ("first", "second")]
        return {"critique": "So.", "score": 0.9, "best": int(done), "done": done, "tasks": tasks}
    return respond(request) if request.schema else None


ROLES = [{"name": name, "instructions": "Solve it.", "strategy": "react"} for name in ("first", "second")]


@pytest.mark.parametrize(("strategy", "settings"), [("plan", {}), ("team", {"roles": ROLES})])
async def test_every_worker_calls_a_tool_that_has_to_be_called(strategy: str, settings: dict[str, Any]) -> None:
    def script(request: Request) -> Reply:
        if (planned := planning(request)) is not None:
            return planned
        if request.tools and "has to be called: weather" in request.text and not results(request):
            assert request.tools == ("weather",)
            return OSLO
        return "It is 20 degrees." if results(request) or not request.tools else "I would rather not."

    graph = graph_of(strategy).builder.compile(checkpointer=InMemorySaver())
    asking = context(script, **settings, call_client_tool=True)
    waiting = await graph.ainvoke(ASK, CONFIG, context=asking)
    assert [call["name"] for call in calls_of(waiting)] == ["weather", "weather"]
    given = {
        each.id: [{"tool_call_id": call["id"], "content": "20 degrees"} for call in each.value["tool_calls"]]
        for each in waiting["__interrupt__"]
    }
    done = await graph.ainvoke(Command(resume=given), CONFIG, context={**asking, "call_client_tool": False})
    assert "__interrupt__" not in done
    assert "20 degrees" in done["answer"]


@pytest.mark.parametrize(("strategy", "settings"), [("plan", {}), ("team", {"roles": ROLES, "max_rounds": 1})])
async def test_workers_that_call_no_tool_bring_no_answer(strategy: str, settings: dict[str, Any]) -> None:
    asking = context(lambda request: planning(request) or "No.", **settings, call_client_tool=True)
    refusing = await graph_of(strategy).ainvoke(ASK, context=asking)
    assert refusing["answer"] is None


@pytest.mark.parametrize(
    ("strategy", "settings"),
    [("plan", {"worker": "lats"}), ("plan", {"worker_settings": {"acting": "paper"}}), ("team", {})],
)
async def test_no_worker_is_made_to_call_what_it_cannot(strategy: str, settings: dict[str, Any]) -> None:
    with pytest.raises(Misuse, match="call_client_tool"):
        await graph_of(strategy).ainvoke(ASK, context=context(call_client_tool=True, **settings))


@pytest.mark.parametrize("strategy", ["trials", "plan", "team"])
async def test_strategies_whose_workers_act_wait_as_well(strategy: str) -> None:
    def script(request: Request) -> Reply:
        if request.schema == "Plan":
            return {"subgoals": [{"id": str(n), "goal": f"Look {n} times", "needs": []} for n in (1, 2)]}
        if request.schema == "Delegation":
            done = "20 degrees" in request.last
            judged = {"critique": "So.", "score": 0.9, "best": int(done), "done": done}
            return judged | {"tasks": [] if done else [{"to": "solver", "task": "Look."}]}
        if request.schema:
            return respond(request)
        if "weather" not in request.tools:
            return "All in all it is 20 degrees."
        return " ".join(results(request)) or OSLO

    graph = graph_of(strategy).builder.compile(checkpointer=InMemorySaver())
    roles = {"roles": [{"name": "solver", "instructions": "Solve it.", "strategy": "react"}]}
    settings = context(script, **(roles if strategy == "team" else {}))
    result = await graph.ainvoke(ASK, CONFIG, context=settings)
    turns = 0
    while result.get("__interrupt__"):
        turns += 1
        given = {
            waiting.id: [{"tool_call_id": call["id"], "content": "20 degrees"} for call in waiting.value["tool_calls"]]
            for waiting in result["__interrupt__"]
        }
        result = await graph.ainvoke(Command(resume=given), CONFIG, context=settings)
        assert turns < 20
    assert turns
    assert "20 degrees" in result["answer"]
    assert isinstance(result["messages"][-1], AIMessage)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"function": {}},
        {"function": {"name": "two words"}},
        {"function": {"name": "a", "parameters": {"type": "string"}}},
    ],
)
def test_a_wrong_declaration_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="client_tools"):
        ReactContext.model_validate({"client_tools": [wrong]})


def test_tools_have_no_place_in_an_environment() -> None:
    with pytest.raises(ValidationError, match="environment"):
        ReactContext.model_validate({"client_tools": [WEATHER], "environment": "arithmetic"})
