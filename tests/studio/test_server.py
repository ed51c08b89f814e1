"""What holds for the server as a whole: runs at once, no blocking calls, no keys let out, no files left behind."""

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.tavily_server import TavilyServer

pytestmark = [pytest.mark.studio, pytest.mark.matrix, pytest.mark.xdist_group("studio")]

TREES = [
    *("alder", "ash", "aspen", "beech", "birch", "cedar", "cherry", "chestnut", "cypress", "elm"),
    *("fir", "hawthorn", "hazel", "hornbeam", "juniper", "larch", "linden", "maple", "oak", "poplar"),
]


def asking(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def on_new_thread(client: LangGraphClient, strategy: str, text: str, context: dict[str, Any]) -> Any:
    thread = (await client.threads.create())["thread_id"]
    return await client.runs.wait(thread, strategy, input=asking(text), context=context)


@pytest.mark.thorough
async def test_twenty_runs_are_in_flight_together(client: LangGraphClient, openai_server: OpenAIServer) -> None:
    before = len(openai_server.requests)
    questions = [f"A slow question about the {tree}." for tree in TREES]
    results = await asyncio.gather(
        *(on_new_thread(client, "reflection", question, {"critic": "checks"}) for question in questions)
    )
    assert [result["answer"] for result in results] == [f"Answer to: {question}" for question in questions]
    calls = openai_server.requests[before:]
    assert len(calls) == 20
    assert max(call.started for call in calls) < min(call.ended or 0.0 for call in calls)


@pytest.mark.thorough
@pytest.mark.hostile
@pytest.mark.timeout(300)
async def test_of_two_hundred_runs_none_is_lost(client: LangGraphClient) -> None:
    at_once = asyncio.Semaphore(50)

    async def begin(number: int) -> tuple[str, str]:
        async with at_once:  # connections, not runs
            thread = (await client.threads.create())["thread_id"]
            context = {"model": "offline"}
            question = asking(f"Number {number}: what is LATS?")
            return thread, (await client.runs.create(thread, "chain_of_thought", input=question, context=context))[
                "run_id"
            ]

    async def end(thread: str, run: str) -> Any:
        async with at_once:
            return await client.runs.join(thread, run)

    begun = await asyncio.gather(*map(begin, range(200)))
    results = await asyncio.gather(*(end(*ids) for ids in begun))
    assert [result["messages"][0]["content"] for result in results] == [
        f"Number {number}: what is LATS?" for number in range(200)
    ]
    assert all(result["answer"] for result in results)


@pytest.mark.thorough
async def test_twenty_runs_do_not_mix(client: LangGraphClient, corpus: Path) -> None:
    for tree in TREES:
        (corpus / f"{tree}.md").write_text(f"# {tree}\n\nThe village of the {tree} keeps {tree} honey in blue jars.\n")
    context = {"model": "offline", "search": "local"}
    small = {"lats": {"n": 2, "max_expansions": 2}, "reflexion": {"max_rounds": 1}}
    strategies = ["lats", "reflexion"] * 10
    results = await asyncio.gather(
        *(
            on_new_thread(client, strategy, f"What does the village of the {tree} keep?", context | small[strategy])
            for strategy, tree in zip(strategies, TREES, strict=True)
        )
    )
    for tree, result in zip(TREES, results, strict=True):
        assert result["outcome"]["status"] in ("solved", "answered", "limit_reached", "exhausted")
        assert f"{tree} honey" in result["answer"]
        assert [message["type"] for message in result["messages"]] == ["human", "ai"]
        assert tree in result["messages"][0]["content"]


@pytest.mark.thorough
async def test_the_server_sees_blocking_calls(client: LangGraphClient, blocking_runs: set[str]) -> None:
    thread = (await client.threads.create())["thread_id"]
    run = await client.runs.create(thread, "probe", input=asking("Why?"))
    blocking_runs.add(run["run_id"])
    await client.runs.join(thread, run["run_id"])
    assert "BlockingError" in str(await client.threads.get(thread))


UNSOLVABLE = "What is LATS? It is unsolvable."


@pytest.mark.thorough
async def test_no_combination_of_model_and_search_blocks(client: LangGraphClient) -> None:
    async def combine(model: str, search: str) -> None:
        context = {"model": model, "search": search}
        results = await asyncio.gather(
            on_new_thread(client, "reflexion", UNSOLVABLE, context | {"max_rounds": 1}),
            on_new_thread(client, "lats", UNSOLVABLE, context | {"n": 2, "max_expansions": 2}),
        )
        assert all(result["answer"] for result in results)
        assert (sum(result["usage"]["tool_calls"] for result in results) > 0) == (search != "none")
        assert not any(result["usage"]["tool_errors"] for result in results)

    pairs = itertools.product(["offline", "openai:test"], ["local", "tavily", "none"])
    await asyncio.gather(*(combine(model, search) for model, search in pairs))


async def test_keys_reach_their_services_and_nobody_else(client: LangGraphClient, tavily_server: TavilyServer) -> None:
    thread = (await client.threads.create())["thread_id"]
    await client.runs.wait(thread, "reflexion", input=asking("Why is it unsolvable?"))
    assert set(tavily_server.keys) == {"tvly-planted-in-the-environment"}
    shown = f"{await client.threads.get_history(thread)} {await client.runs.list(thread)}"
    assert "unsolvable" in shown
    assert "planted-in-the-environment" not in shown


def test_the_server_writes_only_its_own_folder_and_needs_no_env_file(address: str, checkout: Path) -> None:
    written = {path.name for path in checkout.iterdir() if not path.is_symlink()}
    assert written - {"__pycache__"} == {"langgraph.json", "blocking_probe.py", ".langgraph_api"}
