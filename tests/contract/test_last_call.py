"""The last call sees the trajectory that has come furthest, whatever the strategy."""

from typing import Any

import pytest

from reflective_agents.graphs import graph_of
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request, ToolUse

TASK: dict[str, Any] = {
    "messages": [("user", "What is 6 times 7?")],
    "task": {"id": "1", "question": "What is 6 times 7?", "gold": "42"},
}
strategies = pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        ("react", {"max_actions": 2}),
        ("trials", {"max_trials": 1, "max_actions": 2}),
        ("best_of_n", {"n": 2, "max_depth": 2}),
        ("lats", {"n": 2, "max_depth": 2}),
        ("ab_mcts", {"max_depth": 2, "max_expansions": 4}),
        ("tree_of_thoughts", {"n": 2, "max_depth": 2}),
    ],
)


def is_last(request: Request) -> bool:
    return any(words in request.text for words in ("No further action is allowed", "The run ends here"))


def acting(request: Request, closing: Reply) -> Reply:
    """Calculate whatever is shown, and answer with `closing` only."""
    if request.schema:
        many = {"reasoning": "So.", "score": 0.5, "solved": False}
        return {"judgements": [many] * request.text.count("<candidate")} if request.schema == "Judgements" else many
    if is_last(request):
        return closing
    if "likely" in request.text:
        return "likely"
    action = f"calculate: 6 * {7 if '6 * 7 = 42' not in request.text else 8}"
    return ToolUse("act", {"action": action}) if request.tools else action


async def run(strategy: str, settings: dict[str, Any], closing: Reply) -> tuple[Any, list[Request]]:
    model = FakeChatModel(reply=lambda request: acting(request, closing))
    context = settings_of(strategy).model_validate({"model": model, "environment": "arithmetic", **settings})
    return await graph_of(strategy).ainvoke(TASK, context=context), model.calls


@strategies
async def test_the_last_call_sees_the_furthest_trajectory(strategy: str, settings: dict[str, Any]) -> None:
    out, calls = await run(strategy, settings, "Final Answer: 42")
    last = [request for request in calls if is_last(request)]
    assert len(last) == 1
    assert "6 * 7 = 42" in last[0].text
    assert "6 * 8 = 48" in last[0].text
    assert out["answer"] == "42"
