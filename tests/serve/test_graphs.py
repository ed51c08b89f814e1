"""What a run of the server reads of its thread."""

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from starlette.exceptions import HTTPException

from reflective_agents.graphs.chain_of_thought import builder
from reflective_agents.serve.graphs import REPORT, ResumableGraph
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Request

QUESTION: Any = {"messages": [("user", "Why?")]}


class Counting(InMemorySaver):
    """Counts how often the latest checkpoint is read."""

    reads = 0

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        type(self).reads += 1
        return await super().aget_tuple(config)


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Counting, "reads", 0)
    graph: Any = builder.compile(name="chain_of_thought", checkpointer=Counting())
    graph.__class__ = ResumableGraph
    return graph


def run(run_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": "1", "run_id": run_id}}


async def test_a_run_reads_its_thread_once_and_sees_what_is_there(graph: Any) -> None:
    model = FakeChatModel(reply=lambda request: f"Answer to {request.last}")
    for number in (1, 2):
        Counting.reads = 0
        result = await graph.ainvoke(QUESTION, run(str(number)), context={"model": model})
        assert Counting.reads == 1
        assert len(result["messages"]) == 2 * number


async def test_a_run_that_has_begun_goes_on(graph: Any) -> None:
    calls = list[Request]()

    def breaks_first(request: Request) -> str:
        calls.append(request)
        if len(calls) == 1:
            raise RuntimeError("the process is killed")
        return "Because."

    model = FakeChatModel(reply=breaks_first)
    with pytest.raises(RuntimeError):
        await graph.ainvoke(QUESTION, run("1"), context={"model": model})
    Counting.reads = 0
    result = await graph.ainvoke(QUESTION, run("1"), context={"model": model})
    assert Counting.reads == 1
    assert [message.type for message in result["messages"]] == ["human", "ai"]


async def test_a_run_reports_its_answer_where_it_is_told_to(graph: Any) -> None:
    model = FakeChatModel(reply=lambda _: "Because.")
    config: Any = {"configurable": {"thread_id": "1", "run_id": "1", REPORT: True}}
    modes = ["custom", "updates", "debug"]
    parts = [part async for part in graph.astream(QUESTION, config, context={"model": model}, stream_mode=modes)]
    assert {mode for mode, _ in parts} == {"custom", "updates"}
    mode, report = parts[-1]
    assert mode == "custom"
    stored = (await graph.aget_state(run("1"))).values
    assert report[REPORT] == {name: stored[name] for name in ("answer", "outcome", "usage")}
    assert report[REPORT]["answer"] == "Because."


@pytest.mark.parametrize(("values", "node"), [({"answer": "Mine."}, "nobody"), ("Mine.", "finish")])
async def test_a_change_that_cannot_be_made_is_refused(graph: Any, values: Any, node: str) -> None:
    model = FakeChatModel(reply=lambda request: "Because.")
    await graph.ainvoke(QUESTION, run("1"), context={"model": model})
    before = (await graph.aget_state(run("1"))).values
    with pytest.raises(HTTPException) as refused:
        await graph.aupdate_state(run("1"), values, as_node=node)
    assert refused.value.status_code == 400
    assert (await graph.aget_state(run("1"))).values == before
