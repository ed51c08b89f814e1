"""The cache of replies: what was paid for once is not asked again, and samples stay different."""

import itertools
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

from reflective_agents.graphs import chain_of_thought
from reflective_agents.models.cache import caching, open_cache
from reflective_agents.testing.fake import FakeChatModel


def counting() -> FakeChatModel:
    numbers = itertools.count(1)
    return FakeChatModel(reply=lambda request: f"Answer {next(numbers)}")


async def asked(model: FakeChatModel, question: str = "Why?", **settings: float) -> Any:
    context = {"samples": 1, "model": model, **settings}
    graph: Any = chain_of_thought.graph
    return await graph.ainvoke({"messages": [HumanMessage(question)]}, context=context)


async def test_same_requests_are_answered_from_the_file_sample_by_sample(tmp_path: Path) -> None:
    first, second = counting(), counting()
    for model, calls in ((first, 1), (second, 0)):
        with caching(open_cache(tmp_path / "kept" / "replies.sqlite")) as replies:
            states = [await asked(model) for _ in range(3)]
        assert [state["answer"] for state in states] == ["Answer 1", "Answer 2", "Answer 3"]
        assert [state["usage"]["model_calls"] for state in states] == [calls] * 3
        assert replies is not None
        assert (len(model.calls), replies.hits) == (3 * calls, 3 - 3 * calls)


async def test_other_requests_are_asked(tmp_path: Path) -> None:
    model = counting()
    with caching(open_cache(tmp_path / "replies.sqlite")) as replies:
        await asked(model)
        await asked(model, "Who?")
        await asked(model, temperature=0.5)
    assert replies is not None
    assert (len(model.calls), replies.hits) == (3, 0)


async def test_nothing_is_kept_unless_asked_for() -> None:
    model = counting()
    with caching(None) as replies:
        for _ in range(2):
            await asked(model)
    assert (replies, len(model.calls)) == (None, 2)
