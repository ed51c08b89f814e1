"""Why a node solves its task, in words: whose score it is."""

from typing import Any

import pytest

from reflective_agents.graphs import graph_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tree_search.ending import why_solved
from reflective_agents.tree_search.tree_paths import round_score


def node(**values: Any) -> Any:
    return {"id": "0.1", "score": round_score(0.9), "terms": {}, **values}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"reward": 1.0}, "the answer has a reward of 1 (node 0.1)"),
        ({}, "the judge accepts the answer with a score of 0.90 (node 0.1)"),
        ({"terms": {"judge": 0.9}}, "the judge accepts the answer with a score of 0.90 (node 0.1)"),
        (
            {"score": 0.46, "terms": {"judge": 0.8, "consistency": 0.12}},
            "the judge accepts the answer with a score of 0.80; with self-consistency, a score of 0.46 (node 0.1)",
        ),
        (
            {"rescored": True, "terms": {"judge": 0.8}},
            "the judge accepts the answer, and a person gives it a score of 0.90 (node 0.1)",
        ),
    ],
)
def test_a_score_is_said_to_be_that_of_who_gave_it(values: Any, reason: str) -> None:
    assert why_solved(node(**values)) == reason


async def test_a_judge_who_counts_for_half_is_quoted_with_a_score_that_accepts() -> None:
    answers = iter(["zero", "one", "two", "three", "four"])

    def reply(request: Request) -> Reply:
        judgement = {"reasoning": "So.", "score": 0.8, "solved": "one" in request.last}
        return judgement if request.schema else next(answers)

    context = {
        "model": FakeChatModel(reply=reply),
        "search": "none",
        "n": 4,
        "judge_weight": 0.5,
        "grading": "each",
    }
    out = await graph_of("lats").ainvoke({"messages": [("user", "Which?")]}, context=context)
    [best] = [node for node in out["tree"].values() if node["solved"]]
    assert (best["score"], best["terms"]["judge"]) == (round_score(0.525), 0.8)
    assert out["outcome"]["reason"] == why_solved(best)
    assert "accepts the answer with a score of 0.80;" in out["outcome"]["reason"]
