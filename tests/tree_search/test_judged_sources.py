"""What the judge of a tree search is shown of sources: the passages, and what code did not find in those it cites."""

import re
from typing import Any

import pytest

from reflective_agents.graphs import graph_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

QUESTION = {"messages": [("user", "What does a ticket to Orra cost?")]}
PAGE = "A single ticket to Orra costs 6.40 crowns. Dogs travel free."
RIGHT = "A ticket to Orra costs 6.40 crowns [1]."
WRONG = "The Petrel sank off Lund in 1901 [1]."
SEARCHES: list[tuple[str, dict[str, Any]]] = [
    ("lats", {"n": 1}),
    ("lats", {"n": 2, "grading": "together"}),
    ("best_of_n", {"n": 2}),
    ("ab_mcts", {}),
    ("tree_of_thoughts", {"n": 2, "grades": "judge"}),
    ("tree_of_thoughts", {"n": 2, "grades": "labels"}),
    ("tree_of_thoughts", {"n": 2, "grades": "vote"}),
]


def fares(query: str) -> list[dict[str, str]]:
    """Find the one page that there is."""
    return [{"title": "Fares", "url": "https://fares.example/", "content": PAGE}]


def answering(answer: str) -> Any:
    """Look once, then answer; each time in other words, so that siblings differ."""
    written: list[str] = []

    def reply(request: Request) -> Reply:
        judgement = {"reasoning": "So.", "score": 0.9, "solved": True}
        if request.schema == "Judgements":
            return {"judgements": [judgement] * max(request.text.count("<candidate"), 1)}
        if request.schema:
            return judgement
        if "<answer" in request.last:
            return "The best choice is 1" if "<candidate" in request.last else "sure"
        if PAGE not in request.text:
            return ToolUse("search", {"query": f"fares {len(request.text)}"})
        written.append(answer)
        return f"{answer} {'So it is. ' * len(written)}"

    return reply


@pytest.mark.parametrize(("strategy", "settings"), SEARCHES)
@pytest.mark.parametrize(("answer", "flags"), [(f"{RIGHT} {WRONG}", ("Petrel", "Lund", "1901")), (RIGHT, ())])
async def test_a_judge_sees_the_passages_and_what_stands_in_none_of_them(
    strategy: str, settings: dict[str, Any], answer: str, flags: tuple[str, ...]
) -> None:
    model = FakeChatModel(reply=answering(answer))
    context = {"model": model, "search": fares, "max_model_calls": 12, **settings}
    await graph_of(strategy).ainvoke(QUESTION, context=context)
    judged = [request.last for request in model.calls if RIGHT in request.last and "<answer" in request.last]
    assert judged
    for prompt in judged:
        assert PAGE in prompt
        facts = re.findall(r"<checked>\n(.*?)\n</checked>", prompt, re.DOTALL)
        assert facts
        for fact in facts:
            assert all(flag in fact for flag in flags)
            assert ("In none of the passages" in fact) == bool(flags)


async def test_what_an_earlier_answer_has_read_is_not_said_to_be_missing() -> None:
    earlier = [("user", "Free?"), ("assistant", "Dogs are [1].\n\nReferences:\n[1] Dogs, https://dogs.example/")]
    model = FakeChatModel(reply=answering("Lund was founded in 990 [1]."))
    conversation = {"messages": [*earlier, *QUESTION["messages"]]}
    await graph_of("best_of_n").ainvoke(conversation, context={"model": model, "search": fares, "n": 1})
    [prompt] = [request.last for request in model.calls if request.schema]
    assert "In none of the passages" not in prompt
