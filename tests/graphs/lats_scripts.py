"""What the tests of LATS have in common: kinds of requests, judgements, and models that behave in a certain way."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from reflective_agents.graphs.lats import graph
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.tree_paths import ROOT, children, upwards

QUESTION: dict[str, Any] = {"messages": [("user", "What do tides do?")]}
_KINDS = {
    "Reflection:": "reflect",
    "Possible next steps:": "list",
    "Answer now": "conclude",
    "Judge whether the goal": "label",
}


def kind(request: Request) -> str:
    """What a request asks for: judge, reflect, list, label, conclude, or sample."""
    if request.schema:
        return "judge"
    return next((name for words, name in _KINDS.items() if words in request.text), "sample")


def judged(score: float, solved: bool = False) -> dict[str, Any]:
    return {"reasoning": f"worth {score}", "score": score, "solved": solved}


def depth(request: Request) -> int:
    """How many steps there are on the way to the one that is asked for."""
    return sum(message.type == "ai" for message in request.messages)


def judging(score: float) -> Callable[[Request], Reply]:
    """A judge of one candidate or of several that gives the same score to all."""

    def judge(request: Request) -> Reply:
        if request.schema == "Judgements":
            return {"judgements": [judged(score)] * request.text.count("<candidate ")}
        return judged(score)

    return judge


def unsolvable(request: Request) -> Reply:
    """Distinct answers, none of which is ever good enough."""
    if request.schema:
        return judging(0.5)(request)
    return f"answer {request.index} at {depth(request)} after {request.key[:6]}"


@dataclass
class Timeline:
    """A latency that notes, on the clock of the loop, when each call began and ended."""

    latency: Callable[[Request], float]
    calls: list[tuple[float, float, Request]] = field(default_factory=list)

    def __call__(self, request: Request) -> float:
        now = asyncio.get_running_loop().time()
        seconds = self.latency(request)
        self.calls.append((now, now + seconds, request))
        return seconds


async def run(model: FakeChatModelWithoutN | Callable[[Request], Any], given: Any = QUESTION, **settings: Any) -> Any:
    """Run LATS with a model, or with one that behaves like a script."""
    made = model if isinstance(model, FakeChatModelWithoutN) else FakeChatModel(reply=model)
    context = LatsContext.model_validate({"search": "none", "grading": "each", **settings, "model": made})
    return await graph.ainvoke(given, context=context)


def assert_consistent(state: Any) -> None:
    """What holds for every tree that was searched without simulation: nothing is in flight, and every figure is the
    sum of the scores below it."""
    tree, stats = state["tree"], state["stats"]
    assert set(tree) == set(stats)
    for node_id, stat in stats.items():
        assert not stat.get("virtual")
        assert not stat.get("flight")
        scores = [
            node["score"] for node in tree.values() if node_id in upwards(node["id"]) and node["score"] is not None
        ]
        assert (stat["visits"], stat["total"]) == (len(scores), sum(scores))
        assert [tree[child]["parent_id"] for child in children(stats, node_id)] == [node_id] * stat["children"]
    assert [node["id"] for node in tree.values() if node["parent_id"] is None] == [ROOT]
    added = [node_id for entry in state["log"] for node_id in entry["added"]]
    assert sorted(added) == sorted(tree)
