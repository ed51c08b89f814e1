"""Pictures: from the state of a run, and completed from what is known."""

import importlib
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from reflective_agents.graphs import rap
from reflective_agents.graphs.lats import graph
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.settings.rap import RapContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.viewer.figures import figures as known
from reflective_agents.viewer.figures import marks, pruned, says, uct, value
from reflective_agents.viewer.frames import Figures
from reflective_agents.viewer.picture import complete, picture
from tests.viewer.pictures import figures, grown, node, small


def kept(out: dict[str, Any]) -> dict[str, Any]:
    """What a search itself has kept, of the figures that a picture tells."""
    figures = {key: {**stat, **stat.get("own", {})} for key, stat in out["stats"].items()}
    return {key: {name: own[name] for name in Figures.__annotations__ if name in own} for key, own in figures.items()}


def mixed(request: Request) -> Reply:
    """Searches and answers in turn, and a judge whose opinions differ."""
    score = int(request.key[:4], 16) % 60 / 100
    if request.schema:
        return {"reasoning": f"worth {score}", "score": score, "solved": False}
    return (
        ToolUse("search", {"query": f"tides {request.key[:3]}"}) if request.index % 2 else f"Answer {request.key[:6]}"
    )


async def test_figures_retold_are_those_of_the_search() -> None:
    context = LatsContext(model=FakeChatModel(reply=mixed), n=4, grading="each", max_expansions=8)
    out = await graph.ainvoke({"messages": [("user", "What do tides do?")]}, context=context)
    drawn = picture(out, "lats", context.exploration_weight)
    assert known(drawn) == kept(out)
    added = [key for frame in drawn["frames"] for key in frame["added"]]
    assert sorted(added) == sorted(out["tree"])
    assert (drawn["frames"][0]["event"], drawn["frames"][1]["node"]) == ("start", "0")
    best = drawn["nodes"][drawn["path"][-1]]
    assert best["messages"][0]["content"] == drawn["answer"] == out["answer"]
    assert (drawn["question"], drawn["outcome"]) == ("What do tides do?", out["outcome"])


@pytest.mark.parametrize("aggregate", ["max", "mean"])
async def test_planned_steps_are_worth_what_the_search_goes_by(aggregate: Any) -> None:
    context = RapContext(model="offline", search="local", aggregate=aggregate)
    out = await rap.graph.ainvoke({"messages": [("user", "Why is reflection useful in AI?")]}, context=context)
    drawn = picture(out, "rap", context.exploration_weight, context.aggregate)
    shown = known(drawn)
    assert shown == kept(out)
    assert {own["visits"] for own in shown.values()} >= {0, 1, 2}
    assert known(picture({**out, "log": []}, "rap")) == shown
    search = rap.algorithm(context)
    assert {key: value(own, aggregate) for key, own in shown.items()} == {
        key: search.q_value(own) for key, own in out["stats"].items()
    }
    for key, above in ((key, drawn["nodes"][key]["parent_id"]) for key in shown):
        if above:
            expected = search.bound(out["stats"][key], out["stats"][above]["visits"])
            assert uct(shown[key], shown[above], context.exploration_weight, aggregate) == pytest.approx(expected)


def test_messages_become_plain_data() -> None:
    call = {"name": "search", "args": {"query": "moon", "limit": 3}, "id": "1"}
    messages = [AIMessage("Look.", tool_calls=[call]), ToolMessage("Found.", tool_call_id="1")]
    nodes = {**node("0"), "messages": messages, "critique": "", "score": None, "solved": False}
    stats = {"0": figures(0, 0.0)}
    drawn: Any = picture({"tree": {"0": nodes}, "stats": stats, "messages": [HumanMessage("Why?")]}, "lats")
    root = drawn["nodes"]["0"]
    assert (root["action"], root["observation"]) == ("search(moon, 3)", "Found.")
    assert root["messages"] == [
        {"type": "ai", "content": "Look.", "tool_calls": [call]},
        {"type": "tool", "content": "Found.", "tool_calls": [], "tool_call_id": "1"},
    ]
    assert drawn["conversation"] == [{"type": "human", "content": "Why?", "tool_calls": []}]


def test_unfinished_search_has_the_best_node_so_far() -> None:
    nodes = {key: {**node(key), "messages": [], "score": score} for key, score in (("0", 0.9), ("0.0", 0.2))}
    nodes["0.1"] = {**node("0.1", "answer"), "messages": [AIMessage("It is.")], "score": 0.1}
    stats = {key: figures(1, 0.1) for key in nodes}
    values = {"tree": nodes, "stats": stats, "messages": [HumanMessage("Why?")]}
    assert picture(values, "lats")["path"] == ["0", "0.1"]
    assert picture({**values, "best": "0.0"}, "lats")["path"] == ["0", "0.0"]


def test_history_is_that_of_the_log() -> None:
    nodes = {key: {**node(key), "messages": []} for key in ("0", "0.0", "0.1")}
    stats = {"0": figures(2, 0.9), "0.0": figures(1, 0.4, closed=True), "0.1": figures(1, 0.5, closed=True)}
    first = {"kind": "start", "node": None, "added": ["0"], "stats": {"0": [0, 0.0]}, "calls": 0, "tokens": 0}
    second = {"kind": "expand", "node": "0", "added": ["0.0"], "stats": {"0": [1, 0.4], "0.0": [1, 0.4]}}
    third = {"kind": "expand", "node": "0", "added": ["0.1"], "stats": {"0": [2, 0.9], "0.1": [1, 0.5]}}
    costs = {"calls": 2, "tokens": 300}
    values = {
        "tree": nodes,
        "stats": stats,
        "log": [first, {**second, **costs, "merged": 1}, {**third, **costs, "pruned": ["0.0"]}],
        "lessons": [
            {"node": "0.1", "answer": "x", "text": "Look closer."},
            {"node": "", "answer": "", "text": "Brought."},
        ],
    }
    drawn = picture(values, "lats")
    assert [frame["node"] for frame in drawn["frames"]] == ["0", "0", "0"]
    assert [(frame["merged"], frame["pruned"]) for frame in drawn["frames"]] == [(0, []), (1, []), (0, ["0.0"])]
    assert [frame["reflection"] for frame in drawn["frames"]] == ["", "", "Look closer."]
    assert drawn["frames"][1]["stats"] == {"0": figures(1, 0.4), "0.0": figures(1, 0.4, closed=True)}
    assert known(drawn) == stats
    assert [reflection["node"] for reflection in drawn["reflections"]] == ["0.1", ""]


def test_tree_without_a_log_has_its_last_moment() -> None:
    nodes = {key: {**node(key), "messages": []} for key in ("0", "0.0")}
    stats = {"0": figures(1, 0.4), "0.0": figures(1, 0.4, closed=True)}
    (frame,) = picture({"tree": nodes, "stats": stats}, "lats")["frames"]
    assert (frame["event"], frame["added"], frame["stats"]) == ("end", ["0", "0.0"], stats)


def test_what_is_missing_is_filled_in() -> None:
    drawn = complete({"nodes": {"0": node("0", score=None, terms=None), "0.0": node("0.0")}, "path": ["0", "0.7"]})
    assert drawn["nodes"]["0"]["terms"] == {}
    assert drawn["path"] == ["0"]
    assert drawn["frames"][-1]["added"] == ["0", "0.0"]
    assert complete(drawn) == drawn


@pytest.mark.parametrize("ids", [["0", "1"], ["0", "0.1.2"], []], ids=["two roots", "no parent", "empty"])
def test_what_is_no_tree_is_refused(ids: list[str]) -> None:
    with pytest.raises(ValueError, match="do not form a tree"):
        complete({"nodes": {key: node(key) for key in ids}})


def test_uct_is_that_of_the_search() -> None:
    search: Any = importlib.import_module("reflective_agents.tree_search.algorithms.mcts")
    drawn = grown(40)
    for key, fields in drawn["nodes"].items():
        if fields["parent_id"]:
            own, parent = known(drawn)[key], known(drawn)[fields["parent_id"]]
            assert uct(own, parent, 0.7) == search.uct(own, parent["visits"], 0.7)


def test_figures_of_a_moment() -> None:
    drawn = small()
    assert value(known(drawn, 1)["0.0"]) == 0.5
    assert value(known(drawn)["0.0"]) == 0.75
    assert value(figures(0, 0.0)) is None  # type: ignore[arg-type]
    assert uct(figures(0, 0.0), figures(3, 1.0), 1.0) is None  # type: ignore[arg-type]


def test_nodes_are_marked() -> None:
    drawn = small()
    found = {key: marks(drawn, key, pruned(drawn)) for key in drawn["nodes"]}
    assert found == {"0": [], "0.0": [], "0.1": ["pruned"], "0.0.0": ["solved", "best"]}
    assert [says(drawn, drawn["nodes"][key]) for key in ("0", "0.1")] == ["What do tides do?", "guess()"]
