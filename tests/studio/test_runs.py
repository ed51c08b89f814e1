"""Runs without a thread: stream modes, context, and what is told to whoever asks for the impossible."""

import asyncio
from collections import defaultdict
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import StreamMode, StreamPart

from reflective_agents.state.settings import strategy_names
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.tavily_server import TavilyServer

pytestmark = [pytest.mark.studio, pytest.mark.matrix, pytest.mark.xdist_group("studio")]

STRATEGIES = ["reflection", "reflexion", "lats"]


def asking(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def run(client: LangGraphClient, strategy: str, text: str, context: dict[str, Any] | None = None) -> Any:
    return await client.runs.wait(None, strategy, input=asking(text), context=context)


async def stream(
    client: LangGraphClient,
    strategy: str,
    mode: StreamMode | list[StreamMode],
    text: str,
    context: dict[str, Any] | None = None,
) -> list[StreamPart]:
    """What a stream brings after the part that names the run."""
    run = client.runs.stream(None, strategy, input=asking(text), stream_mode=mode, context=context)
    first, *parts = [part async for part in run]
    assert first.event == "metadata"
    return parts


@pytest.mark.thorough
async def test_missing_context_means_the_defaults(
    client: LangGraphClient, openai_server: OpenAIServer, tavily_server: TavilyServer
) -> None:
    calls_before, searched = len(openai_server.requests), len(tavily_server.requests)
    results = await asyncio.gather(*(run(client, strategy, "Why is reflection useful?") for strategy in STRATEGIES))
    assert [result["outcome"]["status"] for result in results] == ["solved", "answered", "solved"]
    assert [result["answer"] for result in results] == [result["messages"][-1]["content"] for result in results]
    assert len(openai_server.requests) - calls_before == sum(result["usage"]["model_calls"] for result in results)
    assert len(tavily_server.requests) - searched == sum(result["usage"]["tool_calls"] for result in results)


async def test_context_is_obeyed(client: LangGraphClient, openai_server: OpenAIServer) -> None:
    calls_before, limits = len(openai_server.requests), {"model": "offline", "max_model_calls": 3}
    contexts = [limits, limits | {"search": "local"}, limits | {"search": "none"}]
    results = await asyncio.gather(
        *(run(client, *wish) for wish in zip(STRATEGIES, ["What is reflexion?"] * 3, contexts, strict=True))
    )
    assert len(openai_server.requests) == calls_before
    assert all(result["answer"] and result["usage"]["model_calls"] <= 3 for result in results)
    assert [result["usage"]["tool_calls"] > 0 for result in results] == [False, True, False]


@pytest.mark.thorough
async def test_values(client: LangGraphClient) -> None:
    *earlier, last = await stream(client, "reflection", "values", "Why?")
    assert {part.event for part in [*earlier, last]} == {"values"}
    assert [len(part.data.get("drafts", [])) for part in earlier] == [0, 0, 1, 1]
    assert last.data["outcome"]["status"] == "solved"


async def test_updates(client: LangGraphClient) -> None:
    parts = await stream(client, "reflection", "updates", "Why?")
    assert [list(part.data) for part in parts] == [["begin"], ["generate"], ["reflect"], ["finish"]]
    assert parts[-1].data["finish"]["answer"] == "Answer to: Why?"


ONE_DRAFT = {"max_rounds": 1}


@pytest.mark.thorough
async def test_messages_are_the_words_of_the_answer(client: LangGraphClient) -> None:
    parts = await stream(client, "reflection", "messages-tuple", "Why?", ONE_DRAFT)
    chunks = [part.data[0] for part in parts if part.event == "messages"]
    assert [chunk["content"] for chunk in chunks] == ["Answer", " to:", " Why?"]
    assert {part.data[1]["langgraph_node"] for part in parts} == {"generate"}


@pytest.mark.thorough
async def test_messages_grow_until_they_are_the_answer(client: LangGraphClient) -> None:
    parts = await stream(client, "reflection", "messages", "Why?", ONE_DRAFT)
    texts = [part.data[0]["content"] for part in parts if part.event == "messages/partial"]
    assert texts == sorted(texts, key=len)
    assert texts[-1] == "Answer to: Why?"


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", strategy_names())
async def test_messages_are_the_answer_and_no_scratch_work(client: LangGraphClient, strategy: str) -> None:
    modes: list[StreamMode] = ["messages-tuple", "values"]
    given: dict[str, dict[str, Any]] = {"plan": OFFLINE, "team": OFFLINE, "town": {"model": "offline", "max_steps": 2}}
    parts = await stream(
        client, strategy, modes, "Why is reflection useful?", {"max_model_calls": 30, **given.get(strategy, {})}
    )
    messages = [part.data[0] for part in parts if part.event == "messages"]
    [answer] = {part.data["answer"] for part in parts if part.event == "values" and part.data.get("answer")}
    texts: defaultdict[str, str] = defaultdict(str)
    for chunk in messages:
        texts[chunk["id"]] += chunk["content"]
    assert [*texts.values()] == [answer]


@pytest.mark.thorough
async def test_custom_events_are_numbered(client: LangGraphClient) -> None:
    for parts in await asyncio.gather(*(stream(client, strategy, "custom", "Why?") for strategy in STRATEGIES)):
        events = [part.data for part in parts]
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert events[0]["event"] == "begin"
        assert events[0]["model"] == "openai:test"
        assert events[-1]["event"] == "end"


@pytest.mark.thorough
async def test_events(client: LangGraphClient) -> None:
    events = [part.data for part in await stream(client, "reflection", "events", "Why?")]
    names = {(event["event"], event["name"]) for event in events}
    assert {
        ("on_chain_start", "reflection"),
        ("on_chain_end", "finish"),
        ("on_chat_model_end", "CompatibleChatOpenAI"),
    } <= names


OFFLINE = {"model": "offline", "search": "local"}
TASK = {
    "id": "1",
    "question": "What pulls the sea?",
    "gold": "the moon",
    "data": {"context": [["Sea", ["The moon pulls the sea."]]]},
}


@pytest.mark.thorough
async def test_an_agent_acts_with_tools(client: LangGraphClient) -> None:
    result = await run(client, "react", "What is reflexion?", OFFLINE)
    assert result["answer"] == result["messages"][-1]["content"]
    assert [step["valid"] for step in result["steps"]] == [True]
    assert (result["usage"]["tool_calls"], result["usage"]["tool_errors"]) == (1, 0)


@pytest.mark.thorough
async def test_an_agent_acts_in_an_environment_on_the_task_it_is_given(client: LangGraphClient) -> None:
    context: dict[str, Any] = {"model": "offline", "environment": "questions", "acting": "paper", "max_actions": 3}
    given = asking("What pulls the sea?") | {"task": TASK}
    result: Any = await client.runs.wait(None, "react", input=given, context=context)
    assert 1 <= len(result["steps"]) <= 3
    assert result["reward"] in (None, 0, 1)


@pytest.mark.thorough
async def test_samples_are_voted_on(client: LangGraphClient) -> None:
    result = await run(client, "chain_of_thought", "What is reflexion?", {"model": "offline", "samples": 3})
    assert len({sample["answer"] for sample in result["samples"]}) == 1
    assert len(result["samples"]) == 3


@pytest.mark.thorough
async def test_runs_learn_from_earlier_ones_by_the_servers_store(client: LangGraphClient) -> None:
    context: dict[str, Any] = {"model": "offline", "max_rounds": 2}
    given = asking("Write about what pulls the sea.")

    async def experienced(name: str) -> tuple[Any, list[int]]:
        events, result = [], None
        parts = client.runs.stream(
            None, "reflection", input=given, context=context | {"experience": name}, stream_mode=["custom", "values"]
        )
        async for part in parts:
            if part.event == "custom":
                events.append(part.data)
            elif part.event == "values":
                result = part.data
        return result, [event["lessons"] for event in events if event["event"] == "recalled"]

    first, recalled_first = await experienced("seas")
    _, recalled_second = await experienced("seas")
    _, recalled_elsewhere = await experienced("mountains")
    assert [recalled_first, recalled_second, recalled_elsewhere] == [[0], [1], [0]]
    kept = (await client.store.search_items(("memory", "experience%2Fseas", "item"), limit=10))["items"]
    assert first["experience"]["drawn"] == [item["key"] for item in kept]
    assert first["drafts"][-1]["critique"].startswith(kept[0]["value"]["advice"])


@pytest.mark.thorough
async def test_trials_learn_from_each_other(client: LangGraphClient) -> None:
    context: dict[str, Any] = {
        "model": "offline",
        "environment": "questions",
        "acting": "paper",
        "max_trials": 2,
        "max_actions": 2,
    }
    given: Any = asking("What pulls the sea?") | {"task": TASK | {"gold": "nobody can guess this"}}
    result: Any = await client.runs.wait(None, "trials", input=given, context=context)
    assert result["outcome"]["limit"] == {"name": "max_trials", "most": 2, "spent": 2}
    assert [bool(trial["reflection"].strip()) for trial in result["trials"]] == [True, False]


IMPOSSIBLE: list[tuple[str, dict[str, Any], list[str]]] = [
    ("lats", {"n": 0}, ["settings.n", "must be at least 1"]),
    ("reflexion", {"max_rounds": "many"}, ["settings.max_rounds", "a whole number"]),
    ("reflection", {"critic": "nobody"}, ["settings.critic", "'model', 'human' or 'checks'"]),
    ("lats", {"model": "nonsense:x"}, ["UnknownModel", "nonsense:x", "offline"]),
    ("react", {"acting": "both"}, ["settings.acting", "'text' or 'paper'"]),
    ("chain_of_thought", {"samples": 0}, ["settings.samples", "must be at least 1"]),
    ("trials", {"actor": "lats"}, ["settings.actor", "'react' or 'chain_of_thought'"]),
    ("lats", {"search": "local", "corpus": "no/such/folder"}, ["corpus", "REFLECT_CORPUS"]),
]


async def test_impossible_settings_are_named(client: LangGraphClient) -> None:
    async def untold(strategy: str, context: dict[str, Any], events: list[str]) -> list[str]:
        try:
            result: Any = await client.runs.wait(None, strategy, input=asking("?"), context=context, raise_error=False)
            text = "{error}: {message}".format(**result["__error__"])
        except httpx.HTTPStatusError as refused:  # at the door, before a run begins
            text = "\n".join(refused.__notes__)
        return [part for part in events if part not in text]

    assert await asyncio.gather(*(untold(*case) for case in IMPOSSIBLE)) == [[]] * len(IMPOSSIBLE)


@pytest.mark.thorough
async def test_empty_question_ends_in_an_error_and_the_server_goes_on(client: LangGraphClient) -> None:
    async def ask(strategy: str, messages: list[Any]) -> tuple[str, str]:
        thread = (await client.threads.create())["thread_id"]
        begun = await client.runs.create(thread, strategy, input={"messages": messages})
        await client.runs.join(thread, begun["run_id"])
        found = await client.threads.get(thread)
        assert "EmptyQuestion" in str(found)
        assert "the question is empty: give" in str(found)
        return found["status"], (await client.runs.get(thread, begun["run_id"]))["status"]

    empty: list[list[Any]] = [[], [{"role": "user", "content": "  "}]]
    ends = await asyncio.gather(*(ask(strategy, messages) for strategy in STRATEGIES for messages in empty))
    assert ends == [("error", "error")] * 6
    assert (await run(client, "reflection", "What is LATS?"))["answer"]
