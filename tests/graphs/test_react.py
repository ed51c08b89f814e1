"""ReAct: both forms of an action, both modes, what goes wrong with actions, limits, environments, given tools."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from tenacity import wait_none

from reflective_agents.graphs.react import builder, graph
from reflective_agents.prompts import react as prompts
from reflective_agents.state.errors import Misuse
from reflective_agents.state.outcome import limited
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from reflective_agents.tools.arithmetic import arithmetic_tools

ASK: dict[str, Any] = {"messages": [("user", "What do tides do?")]}
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
both_ways = pytest.mark.parametrize("way", ["paper", "tools"])


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    for name in ("moon", "tides", "sand"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe {name} moves the water of the ocean every single day.\n")
    return str(tmp_path)


def taken(request: Request) -> int:
    """How many steps the agent has taken, in either mode."""
    text = request.last.rpartition("Question:")[2]
    return sum(message.type == "ai" for message in request.messages) or text.count("\nObservation ")


def steps(*replies: Reply) -> Script:
    """A model that says these things one after another, and the last one again and again."""
    return lambda request: replies[min(taken(request), len(replies) - 1)]


async def run(script: Script, given: dict[str, Any] = ASK, **settings: Any) -> tuple[Any, FakeChatModel]:
    model = FakeChatModel(reply=script)
    context = ReactContext.model_validate({"model": model, "search": "none", **settings})
    return await graph.ainvoke(given, context=context), model


def asking(question: str) -> dict[str, Any]:
    return {"messages": [("user", question)]}


# Actions as text


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("Thought: Look.\nAction: Search[moon]", "Thought: Done.\nFinal Answer: They move."),
        ("Look.\nAction 1: search[moon]", "Thought 2: Done.\nFinal Answer: They move."),
        ("Thought 1: Look.\nAction 1: search\nAction Input 1: moon", "Final Answer: They move."),
        ('Thought: Look.\nAction: search\nAction Input: {"query": "moon"}', "final answer: They move."),
        ("Thought: Look.\nAction: Search\nAction Input: moon\n", "Done.\n\nFinal Answer:\nThey move."),
    ],
)
async def test_both_published_forms_are_read(first: str, last: str, corpus: str) -> None:
    out, _ = await run(steps(first, last), acting="paper", search="local", corpus=corpus)
    [step] = out["steps"]
    assert (step["thought"], step["valid"]) == ("Look.", True)
    assert "corpus:moon.md" in step["observation"]
    assert (out["answer"], out["outcome"]["status"]) == ("They move.", "answered")


async def test_the_scratchpad_is_numbered_and_the_model_is_stopped_before_it_observes() -> None:
    _, model = await run(steps("Sum.\nAction 1: calculator[6 * 7]", "Final Answer: 42"), acting="paper")
    assert model.calls[1].last.endswith("\nThought 1: Sum.\nAction 1: calculator[6 * 7]\nObservation 1: 42\nThought 2:")
    assert {request.stop for request in model.calls} == {("\nObservation",)}
    assert {request.tools for request in model.calls} == {()}


async def test_an_invented_observation_is_cut_off() -> None:
    def invents(request: Request) -> Reply:
        written = "Sum.\nAction: calculator[6 * 7]\n Observation: 41\nThought: So be it.\nFinal Answer: 41"
        return "Final Answer: 42" if taken(request) else written

    out, model = await run(invents, acting="paper")
    assert [step["observation"] for step in out["steps"]] == ["42"]
    assert out["answer"] == "42"
    assert all("41" not in request.text for request in model.calls)


@pytest.mark.parametrize("way", ["paper", "text"])
async def test_an_answer_behind_an_action_is_a_guess_for_want_of_a_better(way: str) -> None:
    def guesses(request: Request) -> Reply:
        if "No further action is allowed" in request.text:
            return "Action: calculator[6 * 8]"
        return "Action: calculator[6 * 7]\n Observation: 42\nFinal Answer: 42"

    out, _ = await run(guesses, acting=way, max_actions=2)
    assert (len(out["steps"]), out["answer"], out["outcome"]["status"]) == (2, "42", "limit_reached")


async def test_on_paper_an_action_of_the_environment_needs_no_label() -> None:
    task = {"id": "1", "question": "What is 6 times 7?"}
    model = FakeChatModel(reply=steps("calculate: 6 * 7", "Answer: 42"))
    context = ReactContext(model=model, acting="paper", environment="arithmetic")
    out = await graph.ainvoke({"messages": [("user", task["question"])], "task": task}, context=context)
    assert [step["observation"] for step in out["steps"]] == ["6 * 7 = 42", "Finished."]
    assert (out["answer"], out["outcome"]["status"]) == ("42", "answered")


async def test_tools_are_declared_by_their_schema_in_both_modes() -> None:
    @tool
    def weigh(thing: str, unit: str = "kg") -> str:
        """Weigh a thing.

        On the finest of scales.
        """
        return "7"

    _, text = await run(steps("Final Answer: 7"), acting="paper", tools=[weigh])
    assert 'weigh[thing: string, unit: string = "kg"]: Weigh a thing.\n' in text.calls[0].text
    _, native = await run(steps("7"), tools=[weigh])
    assert native.calls[0].tools == ("weigh",)
    assert native.calls[0].schemas["weigh"]["properties"]["thing"] == {"type": "string"}


async def test_a_given_tool_takes_the_place_of_the_one_of_its_name() -> None:
    @tool
    def calculator(expression: str) -> str:
        """Work out anything."""
        return "mine"

    out, model = await run(steps(ToolUse("calculator", {"expression": "1"}), "So."), tools=[calculator])
    assert out["steps"][0]["observation"] == "mine"
    assert model.calls[0].tools == ("calculator",)


@pytest.mark.parametrize(
    ("action", "words", "mark"),
    [
        ('join_words[{"words": ["a [1]", "b"], "mark": "-"}]', ["a [1]", "b"], "-"),
        ('Join_Words [ {"words": ["a"]} ] which joins them', ["a"], ""),
        ('join_words\nAction Input: {"words": ["x\\ny"]}', ["x\ny"], ""),
    ],
)
async def test_arguments_may_be_json(action: str, words: list[str], mark: str) -> None:
    given = []

    @tool
    def join_words(words: list[str], mark: str = "") -> str:
        """Join words."""
        given.append((words, mark))
        return mark.join(words)

    await run(steps(f"Action: {action}", "Final Answer: done"), acting="paper", tools=[join_words])
    assert given == [(words, mark)]


@pytest.mark.parametrize(
    ("action", "query"),
    [("echo[a [1] b] and so on [2]", "a [1] b"), ("echo[two\nlines]", "two\nlines"), ("echo[]", ""), ("echo", "")],
)
async def test_other_arguments_are_taken_as_they_are(action: str, query: str) -> None:
    given = []

    @tool
    def echo(text: str) -> str:
        """Say it again."""
        given.append(text)
        return text

    await run(steps(f"Action: {action}", "Final Answer: done"), acting="paper", tools=[echo])
    assert given == [query]


# What goes wrong with an action


@tool
def broken(x: int) -> str:
    """Always fails."""
    raise RuntimeError("no power")


WRONG = [
    ("Action: teleport[home]", ToolUse("teleport", {}), "teleport"),
    ('Action: broken[{"y": 1}]', ToolUse("broken", {"y": 1}), "x"),
    ("Action: broken[1]", ToolUse("broken", {"x": 1}), "no power"),
    ("Action: calculator[1 / 0]", ToolUse("calculator", {"expression": "1 / 0"}), "zero"),
    ("Action: calculator[]", ToolUse("calculator", '{"expression": '), ""),
]


@pytest.mark.matrix(keep=5)
@both_ways
@pytest.mark.parametrize(("text", "native", "problem"), WRONG)
async def test_what_goes_wrong_is_told_and_counted_and_the_run_goes_on(
    text: str, native: Reply, problem: str, way: str
) -> None:
    first, last = (text, "Final Answer: done") if way == "paper" else (native, "done")
    out, model = await run(steps(first, last), acting=way, tools=[broken], calculator=True)
    [step] = out["steps"]
    assert not step["valid"]
    assert problem in step["observation"]
    assert step["observation"] in model.calls[1].text
    assert (out["usage"]["tool_calls"], out["usage"]["tool_errors"]) == (1, 1)
    assert (out["answer"], out["outcome"]["status"]) == ("done", "answered")


@pytest.mark.parametrize("reply", ["I wonder.", "Action:", "Thought: Well.\nFinal Answer:", ToolUse("search", {})])
async def test_what_cannot_be_read_is_told_and_counted(reply: Reply) -> None:
    out, model = await run(steps(reply, "Final Answer: done"), acting="paper")
    assert (out["steps"][0]["action"], out["steps"][0]["valid"]) == ("", False)
    assert "No action could be read." in model.calls[1].last
    assert out["usage"]["parse_failures"] == 1
    assert (out["answer"], out["outcome"]["status"]) == ("done", "answered")


async def test_several_native_calls_run_at_once_and_each_is_answered() -> None:
    together = asyncio.Barrier(3)

    @tool
    async def meet(name: str) -> str:
        """Return once three are there."""
        await together.wait()
        return f"met {name}"

    calls = [ToolUse("meet", {"name": name}) for name in "abc"]
    out, model = await run(steps(calls, "all met"), tools=[meet], call_timeout=20)
    answers = [message for message in model.calls[1].messages if isinstance(message, ToolMessage)]
    assert [answer.text for answer in answers] == ["met a", "met b", "met c"]
    assert out["usage"]["tool_calls"] == 3
    assert len(out["steps"]) == 1


# Limits


def never(request: Request) -> Reply:
    """Acts on and on, and answers only when it is told to."""
    if "No further action is allowed" in request.text:
        return "Final Answer: about 42"
    expression = f"{taken(request)} + 1 + 0 * {int(request.key[:6], 16)}"
    return ToolUse("calculator", {"expression": expression}) if request.tools else f"Action: calculator[{expression}]"


@both_ways
async def test_max_actions_ends_with_the_best_answer_that_was_asked_for(way: str) -> None:
    out, model = await run(never, acting=way, max_actions=3)
    assert out["outcome"] == limited({"name": "max_actions", "most": 3, "spent": 3})
    assert out["answer"] == out["messages"][-1].text == "about 42"
    assert [step["observation"] for step in out["steps"]] == ["1", "2", "3"]
    assert len(model.calls) == 4
    assert model.calls[-1].tool_choice == ("none" if way == "tools" else None)


@both_ways
async def test_without_an_answer_at_the_limit_the_run_fails_and_says_why(way: str) -> None:
    out, model = await run(never, acting=way, max_actions=3, answer_at_limit=False)
    assert (out["answer"], len(model.calls)) == (None, 3)
    assert out["outcome"] == {**limited({"name": "max_actions", "most": 3, "spent": 3}), "status": "failed"}
    assert [message.type for message in out["messages"]] == ["human"]


@pytest.mark.parametrize("insists", ["Action: calculator[1]", "Action: Search[moon]", ToolUse("calculator", {})])
async def test_an_action_is_no_answer(insists: Reply) -> None:
    out, _ = await run(lambda _: insists, acting="paper", max_actions=1)
    assert (out["answer"], out["outcome"]["status"]) == (None, "failed")


@both_ways
async def test_an_agent_that_goes_round_in_circles_is_stopped(way: str) -> None:
    def again(request: Request) -> Reply:
        if "No further action is allowed" in request.text:
            return "Final Answer: 2"
        return ToolUse("calculator", {"expression": "1 + 1"}) if request.tools else "Action: calculator[1 + 1]"

    out, _ = await run(again, acting=way, max_repeats=2, max_actions=50)
    assert len(out["steps"]) == 3
    assert out["outcome"]["limit"] == {"name": "max_repeats", "most": 2, "spent": 2}
    assert (out["outcome"]["status"], out["answer"]) == ("limit_reached", "2")


@both_ways
async def test_what_is_repeated_once_is_told_and_then_the_answer_is_asked_for(way: str) -> None:
    def again(request: Request) -> Reply:
        if "No further action is allowed" in request.text:
            return "Final Answer: 2"
        return ToolUse("calculator", {"expression": "1 + 1"}) if request.tools else "Action: calculator[1 + 1]"

    out, model = await run(again, acting=way)
    assert (len(out["steps"]), len(model.calls), out["answer"]) == (3, 4, "2")
    assert [request.text.count(prompts.KNOWN) for request in model.calls] == (
        [0] * 4 if way == "paper" else [0, 0, 1, 2]
    )


async def test_the_same_action_in_other_words_is_a_repetition() -> None:
    model = FakeChatModel(reply=steps(*(f"Action: calculate: {sign}" for sign in ("6 x 7", "6 * 7 = 42", "6*7"))))
    context = ReactContext(model=model, acting="text", environment="arithmetic")
    out = await graph.ainvoke(asking("What is 6 times 7?"), context=context)
    assert out["outcome"]["limit"] == {"name": "max_repeats", "most": 2, "spent": 2}
    assert [request.text.count(prompts.KNOWN) for request in model.calls] == [0, 0, 1, 2]


@both_ways
async def test_an_agent_that_goes_round_in_a_wider_circle_is_stopped(way: str) -> None:
    """Two actions in turn, each with the same observation every time: A, B, A, B."""

    def in_turn(request: Request) -> Reply:
        if "No further action is allowed" in request.text:
            return "Final Answer: 2"
        count = sum(message.type == "tool" for message in request.messages) + request.last.count("Observation ")
        sum_of = f"1 + {count % 2}"
        return ToolUse("calculator", {"expression": sum_of}) if request.tools else f"Action: calculator[{sum_of}]"

    out, _ = await run(in_turn, acting=way, max_repeats=2, max_actions=50)
    assert len(out["steps"]) == 4
    assert out["outcome"]["limit"] == {"name": "max_repeats", "most": 2, "spent": 2}


@both_ways
@pytest.mark.parametrize("calls", [1, 2, 5])
async def test_the_last_call_is_kept_for_the_answer(calls: int, way: str) -> None:
    out, model = await run(never, acting=way, max_model_calls=calls, max_actions=50)
    assert (len(model.calls), len(out["steps"]), out["answer"]) == (calls, calls - 1, "about 42")
    assert (out["outcome"]["limit"]["name"], out["outcome"]["limit"]["most"]) == ("max_model_calls", calls)


@both_ways
async def test_the_last_tokens_are_kept_for_the_answer_which_sees_what_fits(way: str) -> None:
    @tool
    def recite() -> str:
        """Recite."""
        return "many words " * 2_500

    def recites(request: Request) -> Reply:
        if "No further action is allowed" in request.text:
            return "Final Answer: enough"
        return ToolUse("recite", {}) if request.tools else "Action: recite[]"

    limits: dict[str, Any] = {
        "max_total_tokens": 12_000,
        "max_answer_tokens": 100,
        "context_window": 128_000,
        "max_actions": 50,
        "max_repeats": 50,
    }
    out, model = await run(recites, acting=way, tools=[recite], **limits)
    assert (out["answer"], out["outcome"]["status"]) == ("enough", "limit_reached")
    assert out["outcome"]["limit"]["name"] == "max_total_tokens"
    assert out["usage"]["total_tokens"] <= 12_000
    assert [len(out["steps"]), len(model.calls)] == [1, 2]
    assert "(Steps 1 to 1 are left out, because the context is full.)" in model.calls[-1].text


@pytest.mark.thorough
@both_ways
async def test_a_full_context_leaves_out_the_first_steps_and_says_so(way: str) -> None:
    model = FakeChatModel(reply=never)
    context = ReactContext(
        model=model,
        search="none",
        acting=way,
        max_actions=30,
        max_context_tokens=1_000,
    )
    events: list[Any] = []
    out: Any = None
    parts: Any = graph.astream(ASK, context=context, stream_mode=["custom", "values"])
    async for kind, part in parts:
        if kind == "custom":
            events.append(part)
        else:
            out = part
    trimmed = [event["steps"] for event in events if event["event"] == "trimmed"]
    assert trimmed == sorted(trimmed)
    assert 1 < trimmed[-1] < 30
    assert f"(Steps 1 to {trimmed[-1]} are left out, because the context is full.)" in model.calls[-1].text
    assert all(len(request.text) / 2 < 1_000 for request in model.calls)
    assert out["steps"][-1]["action"].rpartition("*")[2].strip("'})] ") in str(model.calls[-1].messages)


# Given tools


@both_ways
async def test_a_tool_may_ask_a_person(way: str) -> None:
    prompts = []

    @tool
    def ask_person(question: str) -> str:
        """Ask a person."""
        prompts.append(question)
        return f"they say {interrupt(question)}"

    first, last = ToolUse("ask_person", {"question": "How?"}), "by the moon"
    script = steps("Action: ask_person[How?]", f"Final Answer: {last}") if way == "paper" else steps(first, last)
    model = FakeChatModel(reply=script)
    context = ReactContext.model_validate({"model": model, "search": "none", "acting": way, "tools": [ask_person]})
    paused = builder.compile(checkpointer=InMemorySaver())
    stopped = await paused.ainvoke(ASK, CONFIG, context=context)
    assert [question.value for question in stopped["__interrupt__"]] == ["How?"]
    out = await paused.ainvoke(Command(resume="slowly"), CONFIG, context=context)
    assert out["steps"][0]["observation"] == "they say slowly"
    assert (out["answer"], out["usage"]["model_calls"], len(model.calls)) == ("by the moon", 2, 2)


REDUCERS = (
    "12 gear reducers cost 750 yuan each and use 0.5 yuan of power an hour each, 8 hours a day. "
    "What do they cost in one week?"
)
SUMS = [("multiply", 12, 750), ("multiply", 12 * 8, 3.5), ("add", 9000, 336)]


@both_ways
async def test_gear_reducers_with_the_calculator(way: str) -> None:
    sum_ = "12 * 750 + 12 * 0.5 * 8 * 7"
    native = steps(ToolUse("calculator", {"expression": sum_}), "9336")
    text = steps(f"Thought: All at once.\nAction: calculator\nAction Input: {sum_}", "Final Answer: 9336")
    out, _ = await run(text if way == "paper" else native, asking(REDUCERS), acting=way)
    assert [step["observation"] for step in out["steps"]] == ["9336"]
    assert (out["answer"], out["outcome"]["status"]) == ("9336", "answered")


@both_ways
async def test_gear_reducers_with_arithmetic_tools(way: str) -> None:
    given = [{"a": a, "b": b} for _, a, b in SUMS]
    native = steps(*(ToolUse(name, args) for (name, _, _), args in zip(SUMS, given, strict=True)), "9336")
    lines = [f"Action: {name}[{json.dumps(args)}]" for (name, _, _), args in zip(SUMS, given, strict=True)]
    text = steps(*lines, "Final Answer: 9336")
    script = text if way == "paper" else native
    out, _ = await run(script, asking(REDUCERS), acting=way, tools=arithmetic_tools())
    assert [step["observation"] for step in out["steps"]] == ["9000", "336", "9336"]
    assert out["answer"] == "9336"


@pytest.fixture
async def mcp_tools() -> Sequence[BaseTool]:
    """The tools of a real MCP server; each call starts it anew."""
    from langchain_mcp_adapters.client import MultiServerMCPClient  # takes seconds to load

    server = Path(__file__).parents[1] / "support" / "mcp_server.py"
    client = MultiServerMCPClient(
        {"arithmetic": {"transport": "stdio", "command": sys.executable, "args": [str(server)]}}
    )
    return await client.get_tools()


@pytest.mark.wire
@pytest.mark.thorough
@both_ways
async def test_tools_of_an_mcp_server(way: str, mcp_tools: Sequence[BaseTool]) -> None:
    native = steps(
        [ToolUse("multiply", {"a": 12, "b": 750}), ToolUse("multiply", {"a": 12, "b": 28})],
        ToolUse("divide", {"a": 1, "b": 2}),
        "9336",
    )
    text = steps('Action: multiply[{"a": 12, "b": 750}]', 'Action: divide[{"a": 1, "b": 2}]', "Final Answer: 9336")
    out, model = await run(text if way == "paper" else native, asking(REDUCERS), acting=way, tools=mcp_tools)
    multiplied, divided = out["steps"]
    assert "9000" in multiplied["observation"]
    assert (way == "paper") or "336" in multiplied["observation"].splitlines()[1]
    assert "the division is out of order" in divided["observation"]
    assert [multiplied["valid"], divided["valid"]] == [True, False]
    assert out["answer"] == "9336"
    assert "multiply" in (model.calls[0].text if way == "paper" else model.calls[0].tools)


# Environments


GOLD = "gold7f3a91c2e45d"
PROGRAM = "```python\ndef double(x):\n    return 2 * x\n```"
ARTICLES = {"context": [["Moon", ["The Moon pulls the sea.", " It shines."]]]}
TASKS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "questions": (
        {"id": "1", "question": "What pulls the sea?", "gold": GOLD, "data": ARTICLES},
        ["Search[Moon]", "Lookup[shines]", "Finish[{gold}]"],
    ),
    "fever": (
        {"id": "2", "question": "The Moon pulls the sea.", "gold": "SUPPORTS", "data": ARTICLES},
        ["Search[Moon]", "Finish[SUPPORTS]"],
    ),
    "game24": (
        {"id": "3", "question": "2 3 4 12"},
        ["4 - 3 = 1 (left: 1 2 12)", "2 * 12 = 24", "1 * 24 = 24"],
    ),
    "programming": (
        {
            "id": "4",
            "question": "Write double(x).",
            "data": {"entry_point": "double", "tests": ["assert double(2) == 4"], "hidden": f"assert '{GOLD}'"},
        },
        ["no program, but double", PROGRAM],
    ),
}
every_environment = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.sandbox] if name == "programming" else []) for name in TASKS]
)


def acting(actions: Sequence[str], gold: str = GOLD) -> Script:
    """Takes these actions, with a right answer that no prompt holds."""
    replies = [action.replace("{gold}", gold) for action in actions]

    def reply(request: Request) -> Reply:
        if "No further action is allowed" in request.text:
            return "Final Answer: nothing"
        action = replies[min(taken(request), len(replies) - 1)]
        return ToolUse("act", {"action": action}) if request.tools else f"Thought: On.\nAction: {action}"

    return reply


def at(task: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [("user", task["question"])], "task": task}


@pytest.mark.matrix(keep=3)
@both_ways
@every_environment
async def test_environments_reward_in_both_modes(name: str, way: str) -> None:
    task, actions = TASKS[name]
    out, model = await run(acting(actions), at(task), environment=name, acting=way)
    assert (out["reward"], out["outcome"]["status"]) == (1.0, "solved")
    assert len(out["steps"]) == len(actions)
    assert out["usage"]["tool_calls"] == len(actions)
    assert {request.tools for request in model.calls} == {("act",) if way == "tools" else ()}
    assert out["steps"][0]["observation"] in model.calls[1].text


def advise(numbers: str) -> str:
    """Advise what to do with numbers."""
    if numbers != "2 3 4 12":
        raise ValueError("I know no such numbers")
    return "Begin with 4 - 3."


def advised(numbers: str) -> Script:
    """Asks for advice first, and follows it in the same message, and then."""
    follow = acting(TASKS["game24"][1])

    def reply(request: Request) -> Reply | Sequence[Reply]:
        if taken(request) == 0:
            return [ToolUse("advise", {"numbers": numbers}), ToolUse("act", {"action": TASKS["game24"][1][0]})]
        return follow(request)

    return reply


async def test_tools_stand_beside_the_actions_of_an_environment() -> None:
    task, actions = TASKS["game24"]
    out, model = await run(advised("2 3 4 12"), at(task), environment="game24", acting="tools", tools=[advise])
    assert (out["reward"], out["outcome"]["verified_by"]) == (1.0, "environment")
    assert out["steps"][0]["observation"].startswith("Begin with 4 - 3.")
    assert out["usage"]["tool_calls"] == len(actions) + 1
    assert {request.tools for request in model.calls} == {("act", "advise")}
    assert "advise" in model.calls[0].messages[0].text


async def test_a_tool_that_fails_leaves_the_task_as_it_is() -> None:
    task, _ = TASKS["game24"]
    out, model = await run(advised("1"), at(task), environment="game24", acting="tools", tools=[advise])
    assert (out["reward"], out["usage"]["tool_errors"]) == (1.0, 2)
    assert "I know no such numbers" in model.calls[1].text


async def test_tools_alone_neither_reward_nor_end_a_task() -> None:
    task, _ = TASKS["game24"]
    asks = lambda request: ToolUse("advise", {"numbers": f"2 3 4 1{taken(request)}"})  # noqa: E731
    out, _ = await run(asks, at(task), environment="game24", acting="tools", tools=[advise], max_actions=3)
    assert (out["reward"], out["outcome"]["status"]) == (None, "failed")
    assert out["usage"]["tool_calls"] == 3


async def test_tools_environment_and_verifiers_work_together() -> None:
    task, _ = TASKS["game24"]
    settings: dict[str, Any] = {"environment": "game24", "acting": "tools", "tools": [advise]}
    for verdict, status in ((0.9, "exhausted"), (1.0, "solved")):
        verifiers = [lambda request, answer, verdict=verdict: verdict]
        out, _ = await run(advised("2 3 4 12"), at(task), **settings, verifiers=verifiers)
        assert (out["reward"], out["outcome"]["status"]) == (1.0, status)


async def test_no_tool_passes_for_the_action_of_an_environment() -> None:
    def act(action: str) -> str:
        """Act."""
        return action

    with pytest.raises(Misuse, match="another name"):
        await run(acting(["x"]), at(TASKS["game24"][0]), environment="game24", acting="tools", tools=[act])


async def test_tools_stand_beside_actions_that_are_written() -> None:
    task, actions = TASKS["game24"]

    def reply(request: Request) -> Reply:
        steps = sum(message.type == "ai" for message in request.messages)
        if steps == 0:
            return 'Thought: On.\nAction: advise: {"numbers": "2 3 4 12"}'
        return f"Thought: On.\nAction: act: {actions[min(steps, len(actions)) - 1]}"

    out, model = await run(reply, at(task), environment="game24", acting="text", tools=[advise])
    assert out["steps"][0]["observation"] == "Begin with 4 - 3."
    assert (out["reward"], len(out["steps"])) == (1.0, len(actions) + 1)
    assert "advise" in model.calls[0].text


async def test_who_acts_by_calls_is_told_what_an_action_is_and_when_to_answer() -> None:
    task, actions = TASKS["game24"]
    _, model = await run(acting(actions), at(task), environment="game24", acting="tools")
    instructions = model.calls[0].messages[0].text
    assert "one action at a time" in instructions
    assert "Where an example shows an action, call act with it" in instructions
    assert "A message without a call" not in instructions
    assert "give it as soon as you know it, also where no other action leads on" in instructions


@pytest.mark.matrix(keep=3)
@both_ways
@every_environment
async def test_the_right_answer_is_in_no_request(name: str, way: str) -> None:
    task, actions = TASKS[name]
    wrong = [action.replace("{gold}", "something else") for action in actions]
    given = at({**task, "gold": GOLD} if name != "programming" else task)
    for settings in ({}, {"max_actions": 1}):
        out, model = await run(acting(wrong), given, environment=name, acting=way, **settings)
        assert model.calls
        assert [request for request in model.calls if GOLD in request.text + str(request.schemas)] == []
        assert GOLD not in str(out["steps"]) + str(out["outcome"])


@both_ways
async def test_a_wrong_answer_is_no_success(way: str) -> None:
    task, _ = TASKS["questions"]
    out, _ = await run(acting(["Finish[the sun]"]), at(task), environment="questions", acting=way)
    assert (out["answer"], out["reward"]) == ("the sun", 0.0)
    assert (out["outcome"]["status"], len(out["steps"])) == ("exhausted", 1)


@both_ways
async def test_a_best_answer_is_rewarded_too(way: str) -> None:
    task, _ = TASKS["questions"]

    def late(request: Request) -> Any:
        if "No further action is allowed" in request.text:
            return f"Final Answer: {GOLD}"
        return acting(["Search[Moon]"])(request)

    out, _ = await run(late, at(task), environment="questions", acting=way, max_actions=2)
    assert (out["answer"], out["reward"], out["outcome"]["status"]) == (GOLD, 1.0, "solved")


async def test_the_reward_of_an_answer_outlives_further_calls_in_the_same_message() -> None:
    task, _ = TASKS["questions"]
    calls = [ToolUse("act", {"action": f"Finish[{GOLD}]"}), ToolUse("act", {"action": "Search[Moon]"})]
    out, _ = await run(lambda _: calls, at(task), environment="questions")
    assert (out["answer"], out["reward"], out["outcome"]["status"]) == (GOLD, 1.0, "solved")


@pytest.mark.parametrize("wrong", [ToolUse("fly", {}), ToolUse("act", {"wrong": 1}), ToolUse("act", '{"broken": ')])
async def test_calls_that_do_not_fit_an_environment_are_told(wrong: ToolUse) -> None:
    task, _ = TASKS["fever"]
    out, model = await run(steps(wrong, ToolUse("act", {"action": "Finish[SUPPORTS]"})), at(task), environment="fever")
    assert prompts.NO_ACTION in model.calls[1].text
    assert out["usage"]["tool_errors"] == 1
    assert out["reward"] == 1.0


async def test_an_action_may_have_its_label_in_a_call_too() -> None:
    task, actions = TASKS["game24"]
    out, _ = await run(acting([f"Action: {action}" for action in actions]), at(task), environment="game24")
    assert (out["usage"]["tool_errors"], out["reward"]) == (0, 1.0)


async def test_a_plain_answer_that_an_environment_refuses_is_told_to_a_native_agent() -> None:
    task, _ = TASKS["fever"]
    out, model = await run(steps("Perhaps.", "SUPPORTS"), at(task), environment="fever")
    assert "[Perhaps.] is not one of the three answers." in model.calls[1].text
    assert (out["answer"], out["reward"]) == ("SUPPORTS", 1.0)


@pytest.mark.sandbox
@both_ways
async def test_the_best_program_so_far_is_the_answer(way: str) -> None:
    task, _ = TASKS["programming"]
    task = {**task, "data": {**task["data"], "tests": ["assert double(0) == 0", "assert double(2) == 4"]}}
    half = PROGRAM.replace("2 * x", "x")
    script = acting([half, "```python\n```"])
    out, model = await run(script, at(task), environment="programming", acting=way, max_actions=2)
    assert (out["answer"].strip(), out["reward"]) == ("def double(x):\n    return x", 0.5)
    assert out["outcome"]["status"] == "limit_reached"
    assert len(model.calls) == 2


async def test_the_answer_of_a_game_is_checked() -> None:
    task, _ = TASKS["game24"]
    out, _ = await run(acting(["Answer: 2 * 12 = 24"]), at(task), environment="game24", max_actions=1)
    assert (out["reward"], out["outcome"]["status"]) == (0.0, "exhausted")


async def test_advice_is_shown_once() -> None:
    model = FakeChatModel(reply=steps("done"))
    context = ReactContext(model=model, search="none")
    thread = builder.compile(checkpointer=InMemorySaver())
    await thread.ainvoke({**ASK, "advice": "Mind the gap."}, CONFIG, context=context)
    await thread.ainvoke(asking("And now?"), CONFIG, context=context)
    assert ["Mind the gap." in request.text for request in model.calls] == [True, False]


# Votes over steps


def torn(request: Request) -> Reply:
    """Two of five samples look at the tides, three at the moon in other words; then all answer."""
    if taken(request):
        return f"Final Answer: {'ab'[request.index % 2]}"
    query = ["tides", "moon", "tides", "Moon", "moon "][request.index]
    return ToolUse("search", {"query": query}) if request.tools else f"Action: search[{query}]"


@both_ways
async def test_the_step_that_most_samples_want_is_taken(way: str, corpus: str) -> None:
    out, model = await run(torn, acting=way, step_samples=5, search="local", corpus=corpus, verify_sources=False)
    assert [request.n for request in model.calls] == [5, 5]
    assert [step["action"] for step in out["steps"]] == [
        "search({'query': 'moon'})" if way == "tools" else "search[moon]"
    ]
    assert out["answer"].removeprefix("Final Answer: ") == "a"
    assert out["usage"]["tool_calls"] == 1


async def test_a_vote_is_an_event_and_its_samples_are_one_wave() -> None:
    model = FakeChatModelWithoutN(reply=lambda request: f"It is {request.attempt // 3}.", latency=1)
    context = ReactContext(model=model, search="none", step_samples=5)
    events = [part async for part in graph.astream(ASK, context=context, stream_mode="custom")]
    [vote] = [event for event in events if event["event"] == "vote"]
    assert (vote["answer"], vote["votes"], vote["samples"], model.waves) == ("It is 0.", 3, 5, 1)


@pytest.mark.matrix(keep=4)
@both_ways
@pytest.mark.parametrize(("calls", "samples"), [(1, 1), (2, 1), (3, 2), (4, 3), (8, 5)])
async def test_the_last_call_is_kept_when_steps_are_sampled(calls: int, samples: int, way: str) -> None:
    def searching(request: Request) -> Reply:
        if "best answer" in request.last or request.tool_choice == "none":
            return "Final Answer: done"
        return ToolUse("search", {"query": "x"}) if request.tools else "Action: search[x]"

    model = FakeChatModelWithoutN(reply=searching)
    context = ReactContext.model_validate(
        {"model": model, "search": "none", "acting": way, "step_samples": 5, "max_model_calls": calls, "max_actions": 1}
    )
    out = await graph.ainvoke(ASK, context=context)
    assert len(model.calls) == (samples + 1 if calls > 1 else 1)
    assert out["answer"] is not None


async def test_samples_of_a_step_that_fail_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflective_agents.models.faults.WAIT", wait_none())

    def fails(request: Request) -> Reply:
        return ValueError("out of order") if request.attempt < 8 else "It is 4."

    model = FakeChatModelWithoutN(reply=fails)
    out = await graph.ainvoke(ASK, context=ReactContext(model=model, search="none", step_samples=3))
    assert (out["answer"], out["usage"]["failed_calls"]) == ("It is 4.", 8)


async def test_an_answer_that_a_thought_held_is_better_than_none() -> None:
    def holds(request: Request) -> Reply:
        if "No further action is allowed" in request.text:
            return ToolUse("calculator", {"expression": "1"})
        call = {"name": "calculator", "args": {"expression": "6 * 7"}, "id": "1"}
        return AIMessage("It seems clear.\nFinal Answer: 42", tool_calls=[call])

    out, _ = await run(holds, max_actions=1)
    assert (out["answer"], out["outcome"]["status"]) == ("42", "limit_reached")


async def test_an_action_that_was_taken_is_said_to_be_known() -> None:
    add = ToolUse("calculator", {"expression": "1 + 1"})
    out, model = await run(steps(add, add, ToolUse("calculator", {"expression": "2 + 2"}), "4"))
    assert [request.text.count(prompts.KNOWN) for request in model.calls] == [0, 0, 1, 1]
    assert [step["observation"] for step in out["steps"]] == ["2", "2", "4"]
    assert out["answer"] == "4"
