"""The same seed gives the same tree, with a model that varies only where it is given no seed."""

import random
from typing import Any

import pytest
from langchain_core.exceptions import ModelInvalidRequestError

from reflective_agents.graphs import graph_of
from reflective_agents.testing.fake import FakeChatModel, FakeChatModelWithoutN
from reflective_agents.testing.script import Reply, Request, ToolUse

QUESTION = {"messages": [("user", "Why is the sea salty?")]}
SEARCHES: list[tuple[str, dict[str, Any]]] = [
    ("lats", {"search": "local", "max_expansions": 4}),
    ("lats", {"search": "local", "max_expansions": 4, "proposals": "list", "lists": 2}),
    ("ab_mcts", {"search": "local", "max_expansions": 6}),
    ("best_of_n", {"search": "local"}),
    ("tree_of_thoughts", {"search": "none", "n": 3, "beam": 2, "max_depth": 2}),
    ("tree_of_thoughts", {"search": "none", "n": 3, "beam": 2, "max_depth": 2, "grades": "labels"}),
    ("rap", {"search": "local", "max_rollouts": 2}),
]


def moody(request: Request) -> Reply:
    luck = random.Random(f"{request.key} {request.index} {request.seed}") if request.seed is not None else random
    candidates = max(request.text.count("<candidate "), 1)
    if request.schema == "Judgement":
        return _judged(luck)
    if request.schema == "Judgements":
        return {"judgements": [_judged(luck) for _ in range(candidates)]}
    if request.schema == "Usefulness":
        return {"scores": [round(luck.random(), 2) for _ in range(candidates)]}
    if request.tools and request.tool_choice != "none" and len(request.messages) < 4:
        return [ToolUse("search", {"query": luck.choice(["sea", "tide", "rain", "moon"])}) for _ in range(2)]
    word = luck.choice(["sure", "likely", "impossible"])
    return f"Answer {luck.randrange(1000)}\nThe best choice is {luck.randrange(candidates) + 1}\n{word}"


def _judged(luck: Any) -> dict[str, Any]:
    return {"reasoning": "so", "score": round(luck.random() * 0.6, 2), "solved": False}


@pytest.mark.matrix
@pytest.mark.parametrize(("strategy", "settings"), SEARCHES)
async def test_the_same_seed_gives_the_same_tree(strategy: str, settings: dict[str, Any]) -> None:
    trees = []
    for _ in range(2):
        model = FakeChatModel(reply=moody)
        given = {"model": model, "seed": 7, "max_model_calls": 24, **settings}
        out = await graph_of(strategy).ainvoke(QUESTION, context=given)
        assert [request.seed for request in model.calls if request.seed is None] == []
        trees.append({key: (node["score"], node.get("action"), _texts(node)) for key, node in out["tree"].items()})
    assert trees[0] == trees[1]


async def test_labels_of_a_state_are_drawn_with_a_seed_each() -> None:
    model = FakeChatModelWithoutN(reply=moody)
    given = {"model": model, "seed": 7, "search": "none", "n": 1, "grades": "labels", "max_expansions": 1}
    await graph_of("tree_of_thoughts").ainvoke(QUESTION, context=given)
    drawn = [request.seed for request in model.calls if "impossible" in request.messages[0].text]
    assert drawn[:3] == [7, 8, 9]


def _texts(node: Any) -> list[Any]:
    return [node.get("thought"), *(message.text or message.tool_calls for message in node["messages"][:1])]


async def test_a_server_that_refuses_seeds_is_asked_without() -> None:
    def without_seeds(request: Request) -> Reply:
        if request.seed is not None:
            return ModelInvalidRequestError("Unsupported parameter: 'seed' is not supported with this model.")
        return moody(request)

    model = FakeChatModel(reply=without_seeds)
    given = {"model": model, "seed": 7, "search": "local", "max_expansions": 2, "max_model_calls": 24}
    out = await graph_of("lats").ainvoke(QUESTION, context=given)
    assert out["answer"]
    assert {request.seed for request in model.calls[-2:]} == {None}
