"""The recorded LATS search in WebShop, replayed through `graphs.lats`: the same nodes, observations and values.

docs/search-results.md says what the search here does otherwise, and why. Up to the end of the first rollout none of it
changes which nodes there are: from the second on the published program selects by another formula.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.replays.records import load, manifest
from bench.replays.tree_world import Path as Acts
from bench.replays.tree_world import canonical
from bench.replays.webshop import Expansion, proposals_of, read_search, task_of, votes_of, world_of
from reflective_agents.graphs.lats import graph
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request

_ACTED = re.compile(r"^Action \d+: (.*?)\nObservation \d+: ", re.MULTILINE | re.DOTALL)
_JUDGED = re.compile(r"<action>\n(.*?)\n</action>", re.DOTALL)
DATA = "lats_webshop_traces"


def recorded_model(expansions: list[Expansion], misses: list[Acts]) -> FakeChatModel:
    """Proposals and judgements by the actions that led there. Where fewer samples are recorded than are asked for,
    they come again, and are merged."""
    proposals = {
        path: [action for batch in batches for action in batch] for path, batches in proposals_of(expansions).items()
    }
    votes = votes_of(expansions)

    def reply(request: Request) -> Reply:
        if request.schema == "Judgement":
            vote, reasoning = votes.get(tuple(map(canonical, _JUDGED.findall(request.last))), (0.0, ""))
            return {"reasoning": reasoning, "score": max(vote, 0.0), "solved": False}
        path = tuple(map(canonical, _ACTED.findall(request.last)))
        if not proposals.get(path):
            misses.append(path)
            raise LookupError(f"nothing is recorded after {path}")
        return f"Action: {proposals[path][request.index % len(proposals[path])]}"

    return FakeChatModel(reply=reply)


async def replay(record: dict[str, Any]) -> tuple[dict[str, Any], list[Expansion], FakeChatModel]:
    expansions = [expansion for expansion in read_search(record) if expansion.iteration == 1]
    misses: list[Acts] = []
    model = recorded_model(expansions, misses)
    settings: dict[str, Any] = {"n": 10, "judge_weight": 1.0, "max_rollouts": 1, "max_depth": 20, "max_lessons": 0}
    context = LatsContext(
        model=model, environment=world_of(expansions), search="none", examples=False, acting="paper", **settings
    )
    task = task_of(record)
    out = await graph.ainvoke({"messages": [("user", task["question"])], "task": task}, context=context)
    assert misses == []
    return out, expansions, model


async def test_the_first_rollout_has_the_recorded_nodes_observations_and_values(recorded: Path) -> None:
    for record in load(recorded, DATA):
        check_nodes(*await replay(record))


def check_nodes(out: dict[str, Any], expansions: list[Expansion], model: FakeChatModel) -> None:
    nodes = {path_of(out["tree"], node): node for node in out["tree"].values() if node["kind"] != "root"}
    known = {
        tuple(map(canonical, (*expansion.path, child.action))): child
        for expansion in expansions
        for child in expansion.children
        if child.reward >= 0
    }
    assert list(nodes) == list(known)
    for path, child in known.items():
        assert nodes[path]["observation"] == child.observation
        value = child.reward if child.ended else max(child.vote or 0.0, 0.0)
        assert nodes[path]["score"] == pytest.approx(value, abs=1e-9)
    judged = Counter(request.schema or "propose" for request in model.calls)
    assert judged["propose"] == len(expansions)
    assert judged["Judgement"] == sum(not child.ended for child in known.values())


async def test_the_reward_of_the_end_is_the_recorded_one(recorded: Path) -> None:
    for record in load(recorded, DATA):
        out, expansions, _ = await replay(record)
        reward = max(child.reward for child in expansions[-1].children)
        assert out["reward"] == reward
        assert (out["outcome"]["status"] == "solved") is (reward >= 1)
        steps = [entry["kind"] for entry in out["log"]]
        assert steps == ["start", *(expansion.phase for expansion in expansions)]


def test_the_figures_of_the_manifest(recorded: Path) -> None:
    expected = manifest(recorded)[DATA]["expected"]["dev"]
    expansions = [expansion for record in load(recorded, DATA) for expansion in read_search(record)]
    assert len(expansions) == expected["propose_calls"]
    assert sum(len(expansion.actions) for expansion in expansions) == expected["sampled_actions"]
    votes = [child.vote for expansion in expansions for child in expansion.children]
    assert sum(vote is not None for vote in votes) == expected["value_calls"]


def path_of(tree: dict[str, Any], node: Any) -> Acts:
    """The actions from the root to a node."""
    steps: list[str] = []
    while node["parent_id"] is not None:
        steps.append(canonical(node["action"]))
        node = tree[node["parent_id"]]
    return tuple(reversed(steps))
