"""Steps of models that take no tools: as JSON objects or as text in turns, learned once; prompts only grow."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from tenacity import wait_none

from reflective_agents.graphs import best_of_n, react
from reflective_agents.models.capabilities import capabilities_of, way_of_acting
from reflective_agents.models.providers import close_models, get_model
from reflective_agents.models.toolless import read_step_object, read_written_calls, step_format
from reflective_agents.testing.awkward import AwkwardServer, Manner
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

pytestmark = pytest.mark.wire
ASK: dict[str, Any] = {"messages": [("user", "What is 2 + 2, and twice that?")]}
TASK: dict[str, Any] = {
    "messages": [("user", "What?")],
    "task": {"id": "1", "question": "What is 6 * 7?", "gold": "42"},
}
ways = pytest.mark.parametrize(("manner", "way"), [("refuses_tools", "schema"), ("refuses_everything", "text")])


@pytest.fixture(autouse=True)
async def provider(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())
    yield
    await close_models()


def calculating(request: Request) -> Reply:
    """Calculate twice, and then answer."""
    taken = sum("Observation: " in message.text for message in request.messages)
    if request.tools and request.tool_choice != "none" and taken < 2:
        return ToolUse("calculator", {"expression": "2 + 2" if taken == 0 else "4 * 2"})
    return "It is 8."


def solving(request: Request) -> Reply:
    """Calculate, and then give the answer as an action."""
    if request.schema or not request.tools:
        return {"reasoning": "So.", "score": 0.5, "solved": False} if request.schema else "Final Answer: 42"
    taken = any("Observation: " in message.text for message in request.messages)
    return ToolUse("act", {"action": "Answer: 42" if taken else "calculate: 6 * 7"})


async def run(graph: Any, server: AwkwardServer, given: dict[str, Any], **settings: Any) -> tuple[Any, list[Any]]:
    out: Any = None
    events: list[Any] = []
    context = {"model": "openai:test", "search": "none", **settings}
    async for kind, part in graph.astream(given, context=context, stream_mode=["values", "custom"]):
        out, events = (part, events) if kind == "values" else (out, [*events, part])
    return out, events


@ways
async def test_the_way_of_acting_is_learned_once(manner: Manner, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(calculating, manner) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for _ in range(2):
            out, events = await run(react.graph, server, ASK)
            assert [step["observation"] for step in out["steps"]] == ["4", "8"]
            assert (out["answer"], out["usage"]["parse_failures"]) == ("It is 8.", 0)
            refused = [exchange.fault for exchange in server.requests if exchange.fault]
        assert way_of_acting(capabilities_of(get_model("openai:test")), "auto") == way
        assert refused == ["400"] * (1 if way == "schema" else 2)
        assert not [event for event in events if event["event"] == "learned"]


@ways
async def test_each_prompt_begins_with_the_one_before_it(
    manner: Manner, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AwkwardServer(calculating, manner) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        await run(react.graph, server, ASK, max_actions=2)
        sent = [exchange.body["messages"] for exchange in server.requests if not exchange.fault]
    assert [[message["role"] for message in messages] for messages in sent] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
        ["system", "user", "assistant", "user", "assistant", "user"],
    ]
    first, second, last = sent
    assert (second[:2], last[:3]) == (first, second[:3])
    assert last[3] == second[3]


@ways
@pytest.mark.parametrize("graph", [react.graph, best_of_n.graph])
async def test_environments_are_acted_in(graph: Any, manner: Manner, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {} if graph is react.graph else {"n": 1, "gold_reward": True}
    async with AwkwardServer(solving, manner) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        out, _ = await run(graph, server, TASK, environment="arithmetic", **settings)
    assert (out["answer"], out["reward"], out["usage"]["tool_errors"]) == ("42", 1.0, 0)


@ways
async def test_a_way_that_is_set_is_the_only_one(manner: Manner, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(calculating, manner) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        out, _ = await run(react.graph, server, ASK, acting="tools")
        assert (out["outcome"]["status"], [exchange.fault for exchange in server.requests]) == ("failed", ["400"])
        out, _ = await run(react.graph, server, ASK, acting="text")
        assert out["answer"] == "It is 8."
        out, _ = await run(react.graph, server, ASK, acting="schema")
        assert out["outcome"]["status"] == ("answered" if way == "schema" else "failed")


async def test_the_last_call_can_only_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(calculating, "refuses_tools") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        out, _ = await run(react.graph, server, ASK, max_actions=1)
        form = server.requests[-1].body["response_format"]["json_schema"]["schema"]
    assert (out["answer"], list(form["properties"])) == ("It is 8.", ["thought", "answer"])


async def test_a_result_of_an_environment_asks_for_an_action_or_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    brought = []
    world: dict[str, Any] = {"environment": "arithmetic"}
    for reply, settings in ((solving, world), (solving, {**world, "max_actions": 1}), (calculating, {})):
        async with AwkwardServer(reply, "refuses_tools") as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            out, _ = await run(react.graph, server, ASK, **settings)
            texts = [message["content"] for message in server.requests[-1].body["messages"]]
        result = f"Observation: {out['steps'][0]['observation']}"
        brought += [text.removeprefix(result).strip() for text in texts if text.startswith(result)]
    assert ["next action" in more for more in brought] == [True, False, False]


async def test_the_label_of_an_answer_within_a_form_is_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(lambda _: "Final Answer: It is 8.", "refuses_tools") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        out, _ = await run(react.graph, server, ASK)
    assert out["answer"] == "It is 8."


async def test_a_server_that_ignores_the_form_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def writes(request: Request) -> Reply:
        taken = sum("Observation: " in message.text for message in request.messages)
        return "Final Answer: It is 8." if taken == 2 else f"Thought: So.\nAction: calculator[{taken} + 4]"

    async with AwkwardServer(writes, "refuses_tools") as server:
        server.held_to_forms = False
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        out, events = await run(react.graph, server, ASK)
    assert (out["answer"], [step["observation"] for step in out["steps"]]) == ("It is 8.", ["4", "5"])
    learned = [(event["refused"], event["instead"]) for event in events if event["event"] == "learned"]
    assert learned == [("tools", "schema"), ("json_schema", "text")]


def control(action: str) -> str:
    """Switch the lamp."""
    return f"The lamp is {action}."


@pytest.mark.parametrize("acting", ["schema", "text"])
async def test_a_tool_that_takes_an_action_is_no_environment(acting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def switching(request: Request) -> Reply:
        taken = any("Observation: " in message.text for message in request.messages)
        return "The lamp is on." if taken else ToolUse("control", {"action": "on"})

    async with AwkwardServer(switching, "refuses_tools") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        out, _ = await run(react.graph, server, ASK, acting=acting, tools=[control])
        assert "control[" in server.requests[0].body["messages"][0]["content"]
    assert [step["observation"] for step in out["steps"]] == ["The lamp is on."]
    assert (out["answer"], out["usage"]["tool_errors"]) == ("The lamp is on.", 0)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def answer(text: str) -> str:
    """Answer a letter."""
    return text


def act(action: str) -> str:
    """Act in the task's environment."""
    return action


@pytest.mark.parametrize(
    ("written", "ends", "read"),
    [
        ('{"thought": "None is left.", "action": "answer", "input": 0}', False, "0"),
        ('{"thought": "None is left.", "answer": 0}', True, "0"),
        ('{"thought": "", "answer": "Thought: So.\\nFinal Answer: 42"}', True, "42"),
        ("Thought: So.\nFinal Answer: 42", True, "42"),
        ('{"thought": "So.", "action": "Final Answer", "action_input": "42"}', False, "42"),
        ('{"thought": "So.", "answer": {"title": "A", "ok": true}}', True, '{"title": "A", "ok": true}'),
        ('{"thought": "So.", "action": "add", "input": "1, 0"}', False, {"a": 1, "b": 0}),
        ('{"thought": "So.", "action": "add(1, 0)", "input": ""}', False, {"a": 1, "b": 0}),
        ('{"thought": "First I add.", "action": "add", "input": "1, 2"}', True, "Action: add[1, 2]"),
    ],
)
def test_a_step_is_read_also_where_nothing_held_its_model_to_the_form(written: str, ends: bool, read: Any) -> None:
    reply = read_step_object(AIMessage(written), [convert_to_openai_tool(add)], ends=ends)
    assert (reply.tool_calls[0]["args"] if reply.tool_calls else reply.text) == read


@pytest.mark.parametrize(
    ("written", "action"),
    [
        ('{"thought": "So.", "action": "search", "input": "Moon"}', "search[Moon]"),
        ('{"thought": "So.", "action": "Answer: 42"}', "Answer: 42"),
        ('{"thought": "So.", "action": "Action 2: calculate: 6 * 7"}', "calculate: 6 * 7"),
        ('{"thought": "So.", "action": "Answer", "input": "42"}', None),
    ],
)
def test_an_action_of_an_environment_is_read(written: str, action: str | None) -> None:
    reply = read_step_object(AIMessage(written), [convert_to_openai_tool(act)])
    assert [call["args"]["action"] for call in reply.tool_calls] == ([action] if action else [])
    assert action or reply.text == "Final Answer: 42"


@pytest.mark.parametrize("written", ['{"thought": "So.", "answer": "6 * 7 = 42"}', "Final Answer: 6 * 7 = 42"])
async def test_an_answer_that_is_a_calculation_ends_the_task(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    way = "schema" if written.startswith("{") else "text"
    context: dict[str, Any] = {"model": FakeChatModel(reply=lambda _: written), "environment": "arithmetic"}
    out = await react.graph.ainvoke(TASK, context={**context, "acting": way})
    assert (len(out["steps"]), out["answer"], out["outcome"]["status"]) == (1, "42", "solved")


@pytest.mark.parametrize("written", ["Finish[It is 42.]", "Final_Answer[It is 42.]", "answer: It is 42."])
def test_an_action_that_gives_the_answer_is_the_answer(written: str) -> None:
    reply = read_written_calls(AIMessage(f"Action: {written}"), [convert_to_openai_tool(add)], labelled=True)
    assert (reply.text, reply.tool_calls) == ("It is 42.", [])


def test_a_tool_may_be_called_answer() -> None:
    tools = [convert_to_openai_tool(answer), convert_to_openai_tool(add)]
    names = step_format(tools)["json_schema"]["schema"]["properties"]["action"]["enum"]
    assert len({*names}) == len(names) == 3
    call = read_step_object(AIMessage('{"thought": "", "action": "answer", "input": "Dear Sir"}'), tools)
    assert [(made["name"], made["args"]) for made in call.tool_calls] == [("answer", {"text": "Dear Sir"})]
    end = read_step_object(AIMessage(f'{{"thought": "", "action": "{names[-1]}", "input": "Done."}}'), tools)
    assert (end.tool_calls, end.text) == ([], "Done.")


async def test_a_refusal_of_the_only_form_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AwkwardServer(calculating, "refuses_everything") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        known = capabilities_of(get_model("openai:test"))
        known.tools, known.structured = False, ["json_schema"]
        out, _ = await run(react.graph, server, ASK, max_model_calls=8, answer_at_limit=False)
    assert (out["outcome"]["status"], len(server.requests)) == ("failed", 1)


@pytest.mark.parametrize(
    ("written", "query"), [("[1]", "[1]"), ("1874", "1874"), ('["moon landing"]', "moon landing"), ("true", "true")]
)
def test_a_text_is_passed_on_as_a_text_whatever_it_looks_like(written: str, query: str) -> None:
    @tool
    def search(query: str) -> str:
        """Search."""
        return query

    tools = [convert_to_openai_tool(search)]
    step = AIMessage(json.dumps({"thought": "", "action": "search", "input": written}))
    line = AIMessage(f"Thought: I look.\nAction: search[{written}]")
    for read in (read_step_object(step, tools), read_written_calls(line, tools, labelled=True)):
        assert [call["args"] for call in read.tool_calls] == [{"query": query}]
