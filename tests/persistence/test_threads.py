"""What a stored thread can be asked for later: its history, a fork, its data without our classes, a second turn."""

import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import StateSnapshot

from reflective_agents.testing.fake import FakeChatModel
from tests.persistence.runs import QUESTION, SETTINGS, THREAD, Graph, content, open_saver, script, stored

CONTEXT = {name: {**settings, "model": FakeChatModel(reply=script)} for name, settings in SETTINGS.items()}


async def history(graph: Graph) -> list[StateSnapshot]:
    """All snapshots of the thread, the first one first."""
    return [snapshot async for snapshot in graph.aget_state_history(THREAD)][::-1]


def before(snapshots: list[StateSnapshot], expansions: int) -> StateSnapshot:
    """The snapshot after that many expansions, of those that go on with another."""
    return next(
        snapshot
        for snapshot in snapshots
        if snapshot.next == ("expand",) and snapshot.values["expansions"] == expansions
    )


@pytest.mark.matrix
async def test_the_history_shows_the_tree_as_it_was(database: str) -> None:
    async with open_saver(database) as saver:
        graph = stored("lats", saver)
        final = await graph.ainvoke(QUESTION, THREAD, context=CONTEXT["lats"])
        snapshots = await history(graph)
    for expansions in range(5):
        tree, stats = (before(snapshots, expansions).values[key] for key in ("tree", "stats"))
        assert len(tree) == len(stats) == 1 + 3 * expansions
        assert tree == {key: final["tree"][key] for key in tree}
        assert stats["0"]["visits"] == len(tree) - 1  # the first step is not judged
    assert len(final["tree"]) == 13


@pytest.mark.matrix
async def test_a_fork_goes_on_from_its_checkpoint(database: str) -> None:
    async with open_saver(database) as saver:
        graph = stored("lats", saver)
        first = await graph.ainvoke(QUESTION, THREAD, context=CONTEXT["lats"])
        origin = before(await history(graph), expansions=2)
        other = {**CONTEXT["lats"], "max_expansions": 3, "n": 2}
        fork = await graph.ainvoke(None, origin.config, context=other)
        again = await graph.ainvoke(None, origin.config, context=CONTEXT["lats"])
        latest = (await graph.aget_state(THREAD)).values
    assert {key: fork["tree"][key] for key in origin.values["tree"]} == origin.values["tree"]
    assert (len(fork["tree"]), fork["expansions"], fork["stats"]["0"]["visits"]) == (9, 3, 8)
    assert content(again) == content(first)
    assert content(latest["tree"]) == content(first["tree"])


@pytest.mark.thorough
async def test_an_edited_fork_keeps_the_tree(database: str) -> None:
    async with open_saver(database) as saver:
        graph = stored("lats", saver)
        await graph.ainvoke(QUESTION, THREAD, context=CONTEXT["lats"])
        origin = before(await history(graph), expansions=2)
        edited = await graph.aupdate_state(origin.config, {"expansions": 0}, as_node="start")
        state = await graph.ainvoke(None, edited, context=CONTEXT["lats"])
    assert (len(state["tree"]), state["expansions"]) == (7 + 3 * 4, 4)
    assert {key: state["tree"][key] for key in origin.values["tree"]} == origin.values["tree"]


@pytest.mark.thorough
async def test_a_second_question_on_the_thread_has_a_tree_of_its_own(database: str) -> None:
    async with open_saver(database) as saver:
        graph = stored("lats", saver)
        first = await graph.ainvoke(QUESTION, THREAD, context=CONTEXT["lats"])
        question: dict[str, Any] = {"messages": [("user", "And why does it not always help?")]}
        second = await graph.ainvoke(question, THREAD, context={**CONTEXT["lats"], "max_expansions": 2})
        reloaded = (await graph.aget_state(THREAD)).values
    assert (len(second["tree"]), second["expansions"], second["usage"]["model_calls"]) == (7, 2, 1 + 2 * 4 + 1)
    assert [message.type for message in second["messages"]] == ["human", "ai", "human", "ai"]
    assert not set(texts(first)) & set(texts(second))
    assert (reloaded["tree"], reloaded["stats"]) == (second["tree"], second["stats"])


def texts(state: dict[str, Any]) -> list[str]:
    return [str(content(node["messages"][0])) for node in state["tree"].values()]


@pytest.mark.parametrize("strategy", CONTEXT)
async def test_the_whole_state_is_plain_data_for_the_strict_serializer(strategy: str, tmp_path: Any) -> None:
    assert os.environ["LANGGRAPH_STRICT_MSGPACK"] == "true"
    async with open_saver(str(tmp_path / "plain.sqlite")) as saver:
        graph = stored(strategy, saver)
        await graph.ainvoke(QUESTION, THREAD, context=CONTEXT[strategy])
        state = (await graph.aget_state(THREAD)).values
    serializer = JsonPlusSerializer()
    kind, data = serializer.dumps_typed(state)
    assert kind == "msgpack"
    assert serializer.loads_typed((kind, data)) == state
    assert_plain(state)


def assert_plain(value: Any) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            assert type(key) is str
            assert_plain(item)
    elif isinstance(value, list):
        for item in value:
            assert_plain(item)
    else:
        assert value is None or isinstance(value, str | int | float | bool | BaseMessage)


@pytest.mark.parametrize("strategy", ["auto", "plan", "team", "trials"])
def test_a_synchronous_caller_needs_no_asynchronous_checkpointer(strategy: str, tmp_path: Path) -> None:
    turns = []
    for saver in (InMemorySaver(), None):
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as sqlite:
            graph = stored(strategy, saver or sqlite)
            for _ in range(2):
                turns.append(content(graph.invoke(QUESTION, THREAD, context=CONTEXT[strategy])))
    assert turns[:2] == turns[2:]


async def test_an_asynchronous_caller_hears_which_checkpointer_it_needs(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as sqlite:
        graph = stored("react", sqlite)
        with pytest.raises(NotImplementedError, match="AsyncSqliteSaver"):
            await graph.ainvoke(QUESTION, THREAD, context=CONTEXT["react"])
