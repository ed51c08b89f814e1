"""Threads: a person as critic, state history, forks from earlier checkpoints, several questions."""

import asyncio
import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import Command, ThreadState

from reflective_agents.testing.openai_server import OpenAIServer

pytestmark = [pytest.mark.studio, pytest.mark.matrix, pytest.mark.xdist_group("studio")]

HUMAN = {"critic": "human"}
UNSOLVABLE = "An unsolvable question?"


def asking(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.fixture
async def thread(client: LangGraphClient) -> str:
    return (await client.threads.create())["thread_id"]


async def run(
    client: LangGraphClient, thread: str, strategy: str, text: str, context: dict[str, Any] | None = None
) -> Any:
    return await client.runs.wait(thread, strategy, input=asking(text), context=context)


async def resume(client: LangGraphClient, thread: str, reply: object) -> Any:
    return await client.runs.wait(thread, "reflection", command=Command(resume=reply), context=HUMAN)


async def interrupt(client: LangGraphClient, thread: str) -> dict[str, Any]:
    """What the paused thread asks."""
    state = await client.threads.get_state(thread)
    assert state["next"] == ["reflect"]
    assert (await client.threads.get(thread))["status"] == "interrupted"
    [task] = state["tasks"]
    question: dict[str, Any] = task["interrupts"][0]["value"]
    return question


async def test_a_person_accepts(client: LangGraphClient, thread: str) -> None:
    paused = await run(client, thread, "reflection", "Why?", HUMAN)
    assert paused["__interrupt__"][0]["value"] == await interrupt(client, thread)
    assert (await interrupt(client, thread))["draft"] == "Answer to: Why?"
    result = await resume(client, thread, "accept")
    assert (result["outcome"]["status"], result["outcome"]["verified_by"]) == ("solved", "person")
    assert result["answer"] == "Answer to: Why?"
    assert result["usage"]["model_calls"] == 1


@pytest.mark.thorough
async def test_a_person_criticises_in_words(client: LangGraphClient, thread: str) -> None:
    await run(client, thread, "reflection", "Why?", HUMAN)
    await resume(client, thread, "Name a source.")
    assert "Name a source." in (await interrupt(client, thread))["draft"]
    result = await resume(client, thread, "accept")
    assert [(draft["critique"], draft["accepted"]) for draft in result["drafts"]] == [
        ("Name a source.", False),
        ("", True),
    ]
    assert result["usage"]["model_calls"] == 2


@pytest.mark.thorough
async def test_a_person_gives_a_whole_critique(client: LangGraphClient, thread: str) -> None:
    await run(client, thread, "reflection", "Why?", HUMAN)
    result = await resume(client, thread, {"critique": "Short and right.", "score": 0.9, "accept": True})
    assert result["outcome"]["status"] == "solved"
    assert result["drafts"][0]["critique"] == "Short and right."
    assert result["drafts"][0]["score"] == 0.9


@pytest.mark.thorough
async def test_a_person_is_asked_again_for_what_cannot_be_understood(client: LangGraphClient, thread: str) -> None:
    await run(client, thread, "reflection", "Why?", HUMAN)
    await resume(client, thread, {"score": 90})
    assert "must be at most 1" in (await interrupt(client, thread))["error"]
    assert (await resume(client, thread, "accept"))["outcome"]["status"] == "solved"


@pytest.mark.thorough
async def test_settings_of_an_assistant_hold_when_it_resumes(client: LangGraphClient, thread: str) -> None:
    editor = (await client.assistants.create("reflection", context=HUMAN, name="editor"))["assistant_id"]
    await client.runs.wait(thread, editor, input=asking("Why?"))
    await client.runs.wait(thread, editor, command=Command(resume="Name a source."))
    assert "Name a source." in (await interrupt(client, thread))["draft"]


async def search(client: LangGraphClient, thread: str) -> Any:
    return await run(client, thread, "lats", UNSOLVABLE, {"n": 2, "max_expansions": 3})


def values(state: ThreadState) -> dict[str, Any]:
    found = state["values"]
    assert isinstance(found, dict)
    return found


@pytest.mark.thorough
async def test_history_has_a_checkpoint_for_each_step_and_the_tree_grows(client: LangGraphClient, thread: str) -> None:
    result = await search(client, thread)
    history = await client.threads.get_history(thread, limit=100)
    steps = ["__start__", "begin", "start", *["expand"] * 4, "finish"]
    assert [state["next"] for state in reversed(history)] == [*([step] for step in steps), []]
    trees = [values(state).get("tree", {}) for state in reversed(history)]
    assert [len(tree) for tree in trees] == [0, 0, 0, 1, 3, 5, 7, 7, 7]
    assert all(earlier.items() <= later.items() for earlier, later in itertools.pairwise(trees))
    assert trees[-1] == result["tree"]
    assert result["outcome"]["status"] == "limit_reached"
    assert result["outcome"]["limit"] == {"name": "max_expansions", "most": 3, "spent": 3}


@pytest.mark.thorough
async def test_fork_from_an_earlier_checkpoint_leaves_the_old_branch_intact(
    client: LangGraphClient, thread: str
) -> None:
    old = await search(client, thread)
    before = await client.threads.get_history(thread, limit=100)
    fork = next(state for state in before if values(state).get("expansions") == 1)
    settings = {"n": 3, "max_expansions": 2}
    new: Any = await client.runs.wait(thread, "lats", checkpoint=fork["checkpoint"], context=settings)
    assert values(fork)["tree"].items() < new["tree"].items()
    assert (len(old["tree"]), len(new["tree"])) == (7, 6)
    after = await client.threads.get_history(thread, limit=100)
    assert after[-len(before) :] == before
    assert after[len(after) - len(before) - 1]["parent_checkpoint"] == fork["checkpoint"]
    kept = await client.threads.get_state(thread, checkpoint=before[0]["checkpoint"])
    assert values(kept)["tree"] == old["tree"]
    assert values(await client.threads.get_state(thread))["tree"] == new["tree"]


@pytest.mark.thorough
async def test_fork_with_an_edited_draft(client: LangGraphClient, thread: str) -> None:
    await run(client, thread, "reflection", "Why?")
    history = await client.threads.get_history(thread)
    drafted = next(state for state in history if state["next"] == ["reflect"])
    edited = [{**values(drafted)["drafts"][0], "text": "Because it helps."}]
    forked = await client.threads.update_state(
        thread, {"drafts": edited}, as_node="generate", checkpoint=drafted["checkpoint"]
    )
    result: Any = await client.runs.wait(thread, "reflection", checkpoint=forked["checkpoint"])
    assert result["answer"] == "Because it helps."
    kept = await client.threads.get_state(thread, checkpoint=history[0]["checkpoint"])
    assert values(kept)["answer"] == "Answer to: Why?"


@pytest.mark.thorough
async def test_a_second_question_sees_the_first_and_starts_anew(
    client: LangGraphClient, openai_server: OpenAIServer
) -> None:
    artefacts = {"reflection": "drafts", "reflexion": "answers", "lats": "tree"}
    artefacts |= {"react": "steps", "chain_of_thought": "samples", "trials": "trials"}

    async def two_questions(strategy: str) -> None:
        thread = (await client.threads.create())["thread_id"]
        first = await run(client, thread, strategy, f"Who wrote Emma? ({strategy})")
        second = await run(client, thread, strategy, f"And when? ({strategy})")
        assert [message["type"] for message in second["messages"]] == ["human", "ai", "human", "ai"]
        assert second["messages"][:2] == first["messages"]
        assert second["messages"][3]["content"] == second["answer"]
        calls = [call for call in openai_server.calls if f"And when? ({strategy})" in call.text]
        assert second["usage"]["model_calls"] == len(calls)
        assert f"Who wrote Emma? ({strategy})" in calls[0].text
        assert first["answer"] in calls[0].text
        assert len(second[artefacts[strategy]]) == len(first[artefacts[strategy]])

    await asyncio.gather(*map(two_questions, artefacts))


def wait_until(reached: Callable[[], bool]) -> None:
    while not reached():
        time.sleep(0.05)


@pytest.mark.thorough
async def test_a_cancelled_run_can_go_on(client: LangGraphClient, openai_server: OpenAIServer, thread: str) -> None:
    before = len(openai_server.requests)
    begun = await client.runs.create(thread, "reflection", input=asking("A slow one?"), context={"critic": "checks"})
    await asyncio.to_thread(wait_until, lambda: len(openai_server.requests) > before)
    await client.runs.cancel(thread, begun["run_id"], wait=True)
    assert (await client.runs.get(thread, begun["run_id"]))["status"] == "interrupted"
    assert (await client.threads.get_state(thread))["next"] == ["generate"]
    result: Any = await client.runs.wait(thread, "reflection", context={"critic": "checks"})
    assert result["answer"] == "Answer to: A slow one?"


@pytest.mark.thorough
async def test_a_thread_belongs_to_one_strategy(client: LangGraphClient, thread: str) -> None:
    first = await run(client, thread, "reflection", "Why?")
    result: Any = await client.runs.wait(thread, "lats", input=asking("And now?"), raise_error=False)
    assert result["__error__"]["error"] == "WrongThread"
    assert "belongs to reflection, not to lats" in result["__error__"]["message"]
    assert values(await client.threads.get_state(thread))["answer"] == first["answer"]
