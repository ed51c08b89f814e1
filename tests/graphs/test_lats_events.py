"""The events and the log of a search: each tells how the tree has grown, so that it can be drawn at any moment."""

import random
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs.lats import builder
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.tree import first_figures
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.graphs.lats_scripts import judged, kind
from tests.strategies import thread

MANY = {"max_rollouts": 12, "max_model_calls": 1000, "max_depth": 4, "n": 3}
SETTINGS: dict[str, dict[str, Any]] = {
    "open": {"search": "none", "max_expansions": 12, "n": 3},
    "open, in parallel": {"search": "none", "max_expansions": 12, "n": 3, "parallel": 4},
    "questions": {"environment": "questions", **MANY},
    "questions, in parallel": {"environment": "questions", **MANY, "parallel": 4},
}


def reply(request: Request) -> Reply:
    chance = random.Random(f"{request.text} {request.index}")
    if request.schema:
        return judged(chance.random())
    if kind(request) == "reflect":
        return f"lesson {chance.random()}"
    return f"Thought: {chance.random()}\nAction: {chance.choice(['Search', 'Search', 'Finish'])}[{chance.randrange(9)}]"


async def tell(**settings: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All events of a run, and its last state."""
    events: list[dict[str, Any]] = []
    state: dict[str, Any] = {}
    given = {"messages": [("user", "Which?")]}
    context = LatsContext(model=FakeChatModel(reply=reply), **settings)
    stored = builder.compile(checkpointer=InMemorySaver())
    part: Any
    async for mode, part in stored.astream(given, thread(), context=context, stream_mode=["custom", "values"]):
        if mode == "custom":
            events.append(part)
        else:
            state = part
    return events, state


every_setting = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


@pytest.mark.matrix(keep=2)
@every_setting
async def test_the_events_alone_give_the_tree_with_its_figures(settings: dict[str, Any]) -> None:
    events, state = await tell(**settings)
    drawn: dict[str, dict[str, Any]] = {}
    figures: dict[str, list[float]] = {}
    for event in events:
        if event["event"] == "node":
            drawn[event["id"]] = event
            judged = event["score"] is not None
            figures[event["id"]] = [int(judged), event["score"] or 0.0]
        elif event["event"] == "visited":
            figures |= event["stats"]
    assert figures == {key: [stat["visits"], stat["total"]] for key, stat in state["stats"].items()}
    shared = ("parent_id", "depth", "kind", "score", "solved")
    assert {key: [node[name] for name in shared] for key, node in drawn.items()} == {
        key: [node[name] for name in shared] for key, node in state["tree"].items()
    }
    assert {key: node["terms"] for key, node in drawn.items() if node.get("terms")} == {
        key: node["terms"] for key, node in state["tree"].items() if node.get("terms")
    }
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["event"] == "end"
    lessons = [(event["node"], event["lesson"]) for event in events if event["event"] == "reflected"]
    assert lessons == [(lesson["node"], lesson["text"]) for lesson in state["lessons"]]


@pytest.mark.matrix(keep=2)
@every_setting
async def test_the_log_gives_the_figures_of_any_moment_and_what_each_job_has_cost(settings: dict[str, Any]) -> None:
    _, state = await tell(**settings)
    figures: dict[str, list[float]] = {}
    seen: list[str] = []
    for entry in state["log"]:
        figures |= {key: first_figures(state["tree"][key]) for key in entry["added"]} | entry["stats"]
        seen += entry["added"]
        assert set(figures) == set(seen)
    assert figures == {key: [stat["visits"], stat["total"]] for key, stat in state["stats"].items()}
    assert seen == list(state["tree"])
    spent = state["usage"]
    assert sum(entry["calls"] for entry in state["log"]) in (spent["model_calls"], spent["model_calls"] - 1)
    assert sum(entry["tokens"] for entry in state["log"]) <= spent["total_tokens"]


async def test_the_cost_of_what_was_done_at_once_is_told_apart() -> None:
    events, state = await tell(**SETTINGS["open, in parallel"])
    visited = [event for event in events if event["event"] == "visited"]
    assert [event["calls"] for event in visited] == [1 + len(entry["added"]) for entry in state["log"][1:]]
    assert sum(event["tokens"] for event in visited) + state["log"][0]["tokens"] == state["usage"]["total_tokens"]


async def test_events_stay_small_whatever_the_model_says() -> None:
    def verbose(request: Request) -> Reply:
        if request.schema:
            return {**judged(0.5), "reasoning": "why " * 5_000}
        return f"{request.index} " + "word " * 5_000

    context = LatsContext(model=FakeChatModel(reply=verbose), search="none", grading="each", max_expansions=2)
    graph = builder.compile()
    async for event in graph.astream({"messages": [("user", "Which?")]}, context=context, stream_mode="custom"):
        assert len(str(event)) < 1_000
