"""A node that does not end has spent what it has spent: whoever resumes the run goes on from there."""

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.runtime import ExecutionInfo
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from reflective_agents.graphs import chain_of_thought
from reflective_agents.memory.items import Items
from reflective_agents.nodes.unfinished import run_id_of
from reflective_agents.state.experience import new_item
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.persistence.runs import QUESTION, SETTINGS, THREAD, Graph, open_saver, script, stored

YES: Any = Command(resume="yes")
TWO_PAUSES: list[Any] = [QUESTION, YES, YES]
"""What a run is given, whose model asks a person twice."""


async def cancel_after(calls: int, graph: Graph, given: Any, model: FakeChatModel, **settings: Any) -> None:
    """Run until the model has been sent so many more calls, and cancel the run while they are in flight."""
    most, reached = len(model.calls) + calls, asyncio.Event()

    def latency(_: Request) -> float:
        if len(model.calls) >= most:
            reached.set()
        return 0.01

    model.latency = latency
    run = asyncio.create_task(graph.ainvoke(given, THREAD, context={**settings, "model": model}))
    await asyncio.wait_for(reached.wait(), timeout=30)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def calls_counted(graph: Graph) -> int:
    return int((await graph.aget_state(THREAD)).values["usage"]["model_calls"])


@pytest.mark.matrix
async def test_a_run_that_is_cancelled_in_the_midst_of_a_wave_counts_what_was_sent(database: str) -> None:
    model = FakeChatModel(reply=script)
    async with open_saver(database) as saver:
        graph, settings = stored("lats", saver), {**SETTINGS["lats"], "max_model_calls": 20}
        for given in (QUESTION, None):
            await cancel_after(8, graph, given, model, **settings)
            assert await calls_counted(graph) == len(model.calls)
        result = await graph.ainvoke(None, THREAD, context={**settings, "model": model})
        assert result["usage"]["model_calls"] == len(model.calls) == await calls_counted(graph)
    assert result["outcome"]["limit"]["name"] == "max_model_calls"
    assert len(model.calls) <= 20


@pytest.mark.parametrize("strategy", SETTINGS)
async def test_every_strategy_counts_the_calls_of_a_node_that_was_cancelled(strategy: str) -> None:
    model = FakeChatModel(reply=script)
    graph = stored(strategy, InMemorySaver())
    await cancel_after(1, graph, QUESTION, model, **SETTINGS[strategy])
    result = await graph.ainvoke(None, THREAD, context={**SETTINGS[strategy], "model": model})
    assert result["usage"]["model_calls"] == len(model.calls)


def asking(request: Request) -> Reply:
    """Ask a person twice before a draft is judged."""
    if request.schema == "Critique":
        return {"critique": f"{interrupt('Good?')} {interrupt('Sure?')}", "score": 0.5, "accept": True}
    return script(request)


@pytest.mark.matrix
async def test_a_run_that_pauses_counts_what_its_node_has_sent(database: str) -> None:
    model = FakeChatModel(reply=asking)
    async with open_saver(database) as saver:
        graph = stored("reflection", saver)
        for given in TWO_PAUSES:
            result = await graph.ainvoke(given, THREAD, context={"model": model})
            assert await calls_counted(graph) == len(model.calls)
    assert result["usage"]["model_calls"] == len(model.calls) == 4
    assert result["outcome"]["status"] == "solved"


@pytest.mark.parametrize("saver", [InMemorySaver, None])
def test_so_does_one_that_is_called_from_synchronous_code(saver: Any, tmp_path: Any) -> None:
    model = FakeChatModel(reply=asking)
    with SqliteSaver.from_conn_string(str(tmp_path / "kept.sqlite")) as sqlite:
        graph = stored("reflection", saver() if saver else sqlite)
        for given in TWO_PAUSES:
            result = graph.invoke(given, THREAD, context={"model": model})
            assert graph.get_state(THREAD).values["usage"]["model_calls"] == len(model.calls)
    assert result["usage"]["model_calls"] == len(model.calls) == 4


async def test_a_limit_holds_over_all_parts_of_a_run() -> None:
    model = FakeChatModel(reply=asking)
    graph = stored("reflection", InMemorySaver())
    for given in TWO_PAUSES[:2]:
        result = await graph.ainvoke(given, THREAD, context={"model": model, "max_model_calls": 2})
    assert len(model.calls) == 2
    assert result["outcome"]["limit"]["name"] == "max_model_calls"


async def test_the_next_question_counts_from_zero() -> None:
    model = FakeChatModel(reply=script)
    graph = stored("lats", InMemorySaver())
    await cancel_after(8, graph, QUESTION, model, **SETTINGS["lats"])
    sent = len(model.calls)
    result = await graph.ainvoke(QUESTION, THREAD, context={**SETTINGS["lats"], "model": model})
    assert result["usage"]["model_calls"] == len(model.calls) - sent


async def test_a_run_that_is_cancelled_in_its_first_node_counts_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REFLECT_EMBEDDINGS", "lexical")
    model, store = FakeChatModel(reply=applying), InMemoryStore()
    items = await Items.open(store, "experience/why")
    await items.add([new_item("1" * 32, "Why", "why things help", "Think.", kind="success", created=0.0)])
    graph = chain_of_thought.builder.compile(checkpointer=InMemorySaver(), store=store)
    settings = {"experience": "why", "samples": 1, "max_model_calls": 4}
    for given in (QUESTION, None):
        await cancel_after(1, graph, given, model, **settings)
        assert (await graph.aget_state(THREAD)).next == ("begin",)
        assert await calls_counted(graph) == len(model.calls)
    result = await graph.ainvoke(None, THREAD, context={**settings, "model": model})
    assert result["usage"]["model_calls"] == len(model.calls) == 4
    await cancel_after(1, graph, QUESTION, model, **settings)
    assert await calls_counted(graph) == 1, "the next question counts from zero"


def test_the_id_of_a_run_follows_from_thread_and_checkpoint() -> None:
    def run_id(thread: str, checkpoint: str) -> str:
        return run_id_of(ExecutionInfo(checkpoint, checkpoint_ns="begin", task_id="task", thread_id=thread))

    assert run_id("a", "1") == run_id("a", "1")
    assert run_id("a", "1") != run_id("a", "2")
    assert run_id("a", "1") != run_id("copy of a", "1"), "LangGraph's server copies threads with their checkpoints"
    assert run_id("a", "") != run_id("a", ""), "where no checkpoint is named, each run has an id of its own"


def applying(request: Request) -> Reply:
    """Call each item fitting, and draw none."""
    return {"applies": [1], "items": []} if request.schema else "So."
