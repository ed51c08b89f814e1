"""Answers to an open question that are given again: after a person has scored them, and where a run of another process
goes on."""

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs import ab_mcts, lats
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.steering import rescore
from tests.graphs.lats_scripts import QUESTION, judged

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}
WAYS: dict[str, Any] = {"search": "none", "n": 2, "max_expansions": 9, "max_depth": 4}
"""Two branches, in which the same answer is given."""


def two_ways(request: Request) -> Reply:
    """Come to the same answer after different ones."""
    if request.schema:
        candidates = request.last.split("<candidate ")[1:]
        return {"judgements": [judged(0.9 if "the same" in each else 0.5) for each in candidates]}
    depth = sum(isinstance(message, AIMessage) for message in request.messages)
    return ["a start", f"way {request.index}", "the same", f"more {request.index}"][min(depth, 3)]


def once_and_again(request: Request) -> Reply:
    return judged(0.5) if request.schema else "the same"


def nodes_with(values: Any, text: str) -> list[str]:
    return [key for key, node in values["tree"].items() if node["messages"] and node["messages"][0].text == text]


def judgements(model: FakeChatModel) -> int:
    return sum(bool(request.schema) and "the same" in request.last for request in model.calls)


async def paused(graph: Any, context: Any, times: int = 1) -> Any:
    """Run until the answer was given so many times, and return what is stored."""
    given: Any = QUESTION
    values: Any = {"tree": {}}
    while len(nodes_with(values, "the same")) < times:
        await graph.ainvoke(given, CONFIG, context=context, interrupt_before=["expand"])
        given, values = None, (await graph.aget_state(CONFIG)).values
    return values


async def under_way_elsewhere(builder: Any, context: Any) -> Any:
    """Return a graph, and in its thread what another process has left of a run."""
    values = await paused(builder.compile(checkpointer=InMemorySaver()), context)
    graph = builder.compile(checkpointer=InMemorySaver())
    await graph.ainvoke(QUESTION, CONFIG, context=context, interrupt_after=["start"])
    state = {name: values[name] for name in ("tree", "stats", "log", "values", "expansions", "best")}
    await graph.aupdate_state(CONFIG, state, as_node="start")
    return graph


async def test_an_answer_of_another_process_is_neither_judged_nor_expanded_again() -> None:
    model = FakeChatModel(reply=two_ways)
    graph = await under_way_elsewhere(lats.builder, {"model": model, **WAYS})
    values = await graph.ainvoke(None, CONFIG, context={"model": model, **WAYS})
    same = nodes_with(values, "the same")
    assert same == ["0.0.0", "0.1.0"]
    assert judgements(model) == 1
    assert sum(f"{key}.0" in values["tree"] for key in same) == 1


async def test_a_child_of_another_process_that_comes_up_again_is_no_node_again() -> None:
    model = FakeChatModel(reply=once_and_again)
    context = {"model": model, "search": "none", "max_expansions": 8, "seed": 1}
    graph = await under_way_elsewhere(ab_mcts.builder, context)
    before = len(model.calls)
    values = await graph.ainvoke(None, CONFIG, context=context)
    assert (values["expansions"], len(nodes_with(values, "the same"))) == (8, 1)
    assert not any(request.schema for request in model.calls[before:])


async def test_a_persons_score_takes_the_place_of_the_judges_in_other_branches_too() -> None:
    model = FakeChatModel(reply=two_ways)
    context = {"model": model, "judge_weight": 0.5, **WAYS}
    graph = lats.builder.compile(checkpointer=InMemorySaver())
    seen = await paused(graph, context)
    values = await graph.ainvoke(rescore(seen, "0.0.0", 0.0), CONFIG, context=context)
    same = nodes_with(values, "the same")
    assert {key: values["tree"][key]["score"] for key in same} == {"0.0.0": 0.0, "0.1.0": 0.0}
    assert values["answer"] != "the same"


async def test_a_persons_score_of_a_later_node_takes_the_place_of_the_first_ones() -> None:
    context = {"model": FakeChatModel(reply=two_ways), **WAYS, "n": 3, "max_expansions": 12}
    graph = lats.builder.compile(checkpointer=InMemorySaver())
    seen = await paused(graph, context, times=2)
    values = await graph.ainvoke(rescore(seen, "0.1.0", 0.25), CONFIG, context=context)
    scores = {key: round(values["tree"][key]["score"], 2) for key in nodes_with(values, "the same")}
    assert scores == {"0.0.0": 0.9, "0.1.0": 0.25, "0.2.0": 0.25}
