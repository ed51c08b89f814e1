"""Texts longer than the model's window, over the wire: what is in the midst of them is found, and cited where it is."""

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from bench.long_threads import long_thread, recording
from reflective_agents.graphs import react
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.state.errors import Misuse
from reflective_agents.testing.awkward import AwkwardServer, TooLong
from reflective_agents.testing.script import Reply, Request, Script, ToolUse
from tests.strategies import STRATEGIES, Strategy, every_case, name_of

pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("provider")]

WINDOW = 8_192
MOST_REFUSED = 8
"""Requests that are refused until a size is found that fits, and siblings are judged in parts."""
QUESTION = "What is the access code of the northern gate? [alpha]"
FACT = "The access code of the northern gate is 7341."
CHINESE, CHINESE_FACT = "北门的密码是多少？ [alpha]", "北门的密码是7341。"
LINES = {FACT: "On that day the harbour was quiet. ", CHINESE_FACT: "那天港口很安静，船都停着。"}
SEARCHING = [each for each in STRATEGIES if each.searches or each.name in ("plan", "team")]
CITING = [each for each in STRATEGIES if each.name not in ("town",)]
WORKER = {"name": "solver", "instructions": "Solve it.", "strategy": "react"}
SETTINGS: dict[str, dict[str, Any]] = {
    "plan": {"worker": "react"},
    "team": {"roles": [WORKER]},
    "trials": {"actor": "react"},
    "rap": {"max_rollouts": 2},
}


def long_text(characters: int, fact: str = FACT) -> str:
    """Return a text with a fact in its midst."""
    lines = LINES[fact] * (characters // 2 // len(LINES[fact]))
    return f"{lines}{fact} {lines}"


def page(query: str) -> list[dict[str, str]]:
    """Find one long page."""
    return [{"title": "Gates", "url": "https://harbour.test/gates", "content": long_text(100_000)}]


def fetch(page: str) -> str:
    """Fetch a page."""
    return long_text(200_000)


def informed(strategy: Strategy, question: str = QUESTION) -> Script:
    """Return a model that searches for the question, and cites the passage that has the code."""

    def reply(request: Request) -> Reply:
        written = strategy.solving(request)
        shown = re.findall(r'"number": (\d+)[^{}]*(?:is |密码是)7341|7341 \[(s?\d+)\]', request.text)
        statement = f" The code is 7341 [{''.join(shown[-1])}]." if shown else ""
        if "search" in request.tools and not (shown or request.tool_choice == "none" or "Nothing" in request.last):
            written = written if isinstance(written, ToolUse) else ToolUse("search", {"query": request.key[:4]})
        if isinstance(written, ToolUse) and isinstance(written.args, dict):
            return ToolUse(written.name, {"query": f"{question} {written.args['query']}"})
        if isinstance(written, dict) and "search_queries" in written:
            return written | {
                "answer": f"{written['answer']}{statement}",
                "search_queries": [f"{question} {query}" for query in written["search_queries"]],
            }
        if isinstance(written, dict) and "queries" in written:
            return written | {"queries": [f"{question} {query}" for query in written["queries"]]}
        if isinstance(written, str) and shown and strategy.name in ("plan", "team") and "search" in request.tools:
            written = "Answer:"  # and not what the last message says
        return f"{written}{statement}" if isinstance(written, str) else written  # type: ignore[return-value]

    return reply


def cited_parts(answer: str, text: str) -> list[str]:
    """Return the parts of a text to which the references of an answer point."""
    return [text[int(begin) : int(end)] for begin, end in re.findall(r"#char=(\d+),(\d+)$", answer, re.MULTILINE)]


def references(answer: str) -> dict[int, str]:
    """Return the addresses in the list of references of an answer, by number."""
    return {number: url for number, url in split_references(answer)[1].items() if number}


async def run(
    strategy: Strategy,
    messages: Sequence[tuple[str, str] | AnyMessage],
    monkeypatch: pytest.MonkeyPatch,
    *,
    question: str = QUESTION,
    graph: Any = None,
    thread: str = "1",
    window: int = WINDOW,
    too_long: TooLong = "size",
    **settings: Any,
) -> tuple[dict[str, Any], AwkwardServer]:
    """Ask a strategy with a model of a small window."""
    script = recording(informed(strategy, question))
    async with AwkwardServer(script, "small_context", context=window, too_long=too_long) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        context = strategy.make(**SETTINGS.get(strategy.name, {}) | {"model": "openai:test", **settings})
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        return await (graph or strategy.graph).ainvoke({"messages": messages}, config, context=context), server


@pytest.mark.parametrize("strategy", SEARCHING, ids=name_of)
async def test_what_is_in_the_midst_of_a_page_is_found(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    out, server = await run(strategy, [("user", QUESTION)], monkeypatch, search=page, context_window=WINDOW)
    assert out["outcome"]["status"] in ("solved", "answered"), out["outcome"]
    assert "7341" in out["answer"]
    assert any(FACT in part for part in cited_parts(out["answer"], long_text(100_000))), out["answer"]
    assert [call.fault for call in server.requests if call.fault] == []
    assert out["usage"]["model_calls"] == len(server.requests)


@pytest.mark.thorough
@every_case("case", itertools.product(["English", "Chinese"], ["text first", "question first"]), CITING, "-".join)
async def test_a_long_message_is_cited_like_a_corpus(
    strategy: Strategy, case: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    language, order = case
    question, fact = (QUESTION, FACT) if language == "English" else (CHINESE, CHINESE_FACT)
    text, graph = long_text(100_000, fact), strategy.with_memory()
    message = f"{text}\n\n{question}" if order == "text first" else f"{question}\n{text}"
    settings: dict[str, Any] = {"question": question, "graph": graph, "context_window": WINDOW}
    out, server = await run(strategy, [("user", message)], monkeypatch, **settings)
    again, _ = await run(strategy, [("user", f"{question} Once more?")], monkeypatch, **settings)
    for answered in (out, again):
        assert answered["outcome"]["status"] in ("solved", "answered"), answered["outcome"]
        assert any(fact in part for part in cited_parts(answered["answer"], text.strip())), answered["answer"]
    assert again["messages"][0].text == message
    assert [call.fault for call in server.requests if call.fault] == []
    other, _ = await run(strategy, [("user", question)], monkeypatch, thread="2", **settings)
    assert "7341" not in (other["answer"] or "")


@pytest.mark.matrix(over="strategy", keep=2)
@every_case("case", itertools.product(get_args(TooLong), [WINDOW, 4_096]), CITING, lambda case: f"{case[0]}-{case[1]}")
async def test_a_message_that_is_refused_is_shown_in_part(
    strategy: Strategy, case: tuple[TooLong, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    too_long, window = case
    characters = 100_000 if window == WINDOW else 190_000
    text, graph = long_text(characters), strategy.with_memory()
    settings: dict[str, Any] = {"window": window, "too_long": too_long, "graph": graph}
    out, server = await run(strategy, [("user", f"{text}\n\n{QUESTION}")], monkeypatch, **settings)
    assert out["outcome"]["status"] in ("solved", "answered", "limit_reached"), out["outcome"]
    assert any(FACT in part for part in cited_parts(out["answer"], text.strip())), out["answer"]
    assert len([call.fault for call in server.requests if call.fault]) <= MOST_REFUSED
    assert out["usage"]["model_calls"] == len(server.requests)


async def test_a_size_that_was_found_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    react = next(strategy for strategy in CITING if strategy.name == "react")
    messages = [("user", f"{long_text(100_000)}\n\n{QUESTION}")]
    async with AwkwardServer(recording(informed(react)), "small_context", context=WINDOW, too_long="words") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        for _ in range(2):
            await react.graph.ainvoke({"messages": messages}, context=react.make(model="openai:test"))
    refused = [call.fault is not None for call in server.requests]
    half = len(refused) // 2
    assert any(refused[:half])
    assert not any(refused[half:])


@pytest.mark.thorough
@pytest.mark.crossed(2)
@pytest.mark.parametrize("strategy", CITING, ids=name_of)
async def test_a_long_message_that_a_summary_covers_is_still_cited(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, graph = long_text(100_000), strategy.with_memory()
    settings: dict[str, Any] = {"graph": graph, "context_window": WINDOW}
    first, _ = await run(strategy, [("user", f"{text}\n\n{QUESTION}")], monkeypatch, **settings)
    later, server = await run(strategy, [*long_thread(100), ("user", f"{QUESTION} Again?")], monkeypatch, **settings)
    assert graph.get_state({"configurable": {"thread_id": "1"}}).values["compaction"]["messages"] > 2
    assert later["outcome"]["status"] != "failed", later["outcome"]
    assert any(FACT in part for part in cited_parts(later["answer"], text.strip())), later["answer"]
    assert all("read_more" in call.tools for call in server.calls if "search" in call.tools)
    numbered = [references(out["answer"]) for out in (first, later)]
    assert all(numbered[0].get(number, url) == url for number, url in numbered[1].items())
    assert [call.fault for call in server.requests if call.fault] == []


@pytest.mark.parametrize("strategy", CITING, ids=name_of)
async def test_a_text_without_a_question_is_refused(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Misuse, match="context_window"):
        await run(strategy, [("user", long_text(100_000))], monkeypatch, context_window=WINDOW)


@pytest.mark.parametrize("compact", ["auto", "off"])
async def test_a_text_without_a_question_ends_the_run_that_learns_the_window(
    compact: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    react = next(strategy for strategy in CITING if strategy.name == "react")
    out, server = await run(react, [("user", long_text(100_000))], monkeypatch, compact=compact)
    assert out["outcome"]["status"] == "failed"
    assert "context_window" in out["outcome"]["reason"]
    assert len(server.requests) == 1


@pytest.mark.parametrize("acting", ["tools", "text"])
async def test_an_agent_reads_on(acting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(request: Request) -> Reply:
        ends = re.findall(r"read_more\(source='([^']+)', position=(\d+)\)", request.text)
        if len(ends) >= 3:
            return "Final Answer: I have read on." if acting == "text" else "I have read on."
        name, args = ("read_more", {"source": ends[-1][0], "position": int(ends[-1][1])}) if ends else ("fetch", {})
        if acting == "tools":
            return ToolUse(name, args or {"page": "x"})
        return f"Thought: On.\nAction: {name}[{json.dumps(args or {'page': 'x'})}]"

    async with AwkwardServer(reply, "small_context", context=WINDOW) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        context = {
            "model": "openai:test",
            "tools": [fetch],
            "search": "none",
            "acting": acting,
            "context_window": WINDOW,
        }
        out = await react.graph.ainvoke({"messages": [("user", "Read on.")]}, context=context)
    assert out["answer"] == "I have read on."
    first, *others = [json.loads(taken["observation"]) for taken in out["steps"]]
    parts = [first[0], *(part for several in others for part in several)]
    bounds = [tuple(map(int, re.findall(r"\d+", part["url"].partition("#char=")[2]))) for part in parts]
    assert [begin for begin, _ in bounds[1:]] == [end for _, end in bounds[:-1]]
    text = long_text(200_000)
    assert [part["content"] for part in parts] == [text[begin:end].strip() for begin, end in bounds]
    assert all(len(json.dumps(several)) < 3 * WINDOW for several in [first, *others])
    assert [call.fault for call in server.requests if call.fault] == []


@pytest.mark.thorough
async def test_a_kept_text_is_stored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(request: Request) -> Reply:
        taken = sum(message.type == "tool" for message in request.messages)
        return ToolUse("fetch", {"page": str(taken)}) if taken < 8 else "Read."

    saver = InMemorySaver()
    graph: Any = react.graph.builder.compile(checkpointer=saver)
    async with AwkwardServer(reply, "small_context", context=4 * WINDOW) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        context = {"model": "openai:test", "tools": [fetch], "search": "none", "context_window": WINDOW}
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        out = await graph.ainvoke({"messages": [("user", QUESTION)]}, config, context={**context, "max_repeats": 9})
    assert out["usage"]["tool_calls"] == 8
    stored = sum(len(write[2][1]) for writes in saver.writes.values() for write in writes.values())
    stored += sum(len(blob[1]) for blob in saver.blobs.values())
    assert 2 * stored < 8 * 200_000


@pytest.mark.thorough
async def test_a_long_message_is_stored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(request: Request) -> Reply:
        taken = sum(message.type == "tool" for message in request.messages)
        return ToolUse("calculator", {"expression": f"{taken} + 1"}) if taken < 20 else "Read."

    async with (
        AsyncSqliteSaver.from_conn_string(":memory:") as saver,
        AwkwardServer(reply, "small_context", context=16 * WINDOW) as server,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        graph: Any = react.graph.builder.compile(checkpointer=saver)
        context = {"model": "openai:test", "search": "none", "calculator": True, "max_actions": 30}
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        inputs = {"messages": [("user", f"{long_text(200_000)}\n\n{QUESTION}")]}
        out = await graph.ainvoke(inputs, config, context=context | {"context_window": 16 * WINDOW})
        assert out["usage"]["tool_calls"] == 20
        query = "SELECT (SELECT sum(length(value)) FROM writes) + (SELECT sum(length(checkpoint)) FROM checkpoints)"
        async with saver.conn.execute(query) as rows:
            [stored] = await rows.fetchone() or [0]
    assert stored < 6 * 200_000  # and no part of it at each of the 46 steps
