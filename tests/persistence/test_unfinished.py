"""A node that does not end has spent what it has spent: whoever resumes the run goes on from there."""

import asyncio
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

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
            # A call that was about to be sent when the run was cancelled counts, too: nobody knows that it was not.
            assert 0 <= await calls_counted(graph) - len(model.calls) < 8
        result = await graph.ainvoke(None, THREAD, context={**settings, "model": model})
        assert len(model.calls) <= result["usage"]["model_calls"] == await calls_counted(graph)
    assert result["outcome"]["limit"]["name"] == "max_model_calls"
    assert len(model.calls) <= 20


@pytest.mark.matrix
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


@pytest.mark.thorough
async def test_the_next_question_counts_from_zero() -> None:
    model = FakeChatModel(reply=script)
    graph = stored("lats", InMemorySaver())
    await cancel_after(8, graph, QUESTION, model, **SETTINGS["lats"])
    sent = len(model.calls)
    result = await graph.ainvoke(QUESTION, THREAD, context={**SETTINGS["lats"], "model": model})
    assert result["usage"]["model_calls"] == len(model.calls) - sent
