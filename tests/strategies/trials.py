"""A model for `graphs.trials`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies.base import Strategy, actions, mark


def script(request: Request, solves: bool) -> Reply:
    """The second attempt is the one that solves."""
    if request.schema == "Judgement":
        good = solves and "Attempt 2" in request.last
        return {"reasoning": "Good." if good else "Not yet.", "score": 0.9 if good else 0.4, "solved": good}
    if request.last.endswith("Reflection:"):
        return "Look for more evidence."
    if actions(request) == 0 and request.tool_choice != "none":
        return ToolUse("search", {"query": "reflection"})
    lessons = request.messages[0].text.count("\n- ")
    return f"Attempt {lessons + 1} on [{mark(request)}]: reflection finds mistakes."


STRATEGY = Strategy(
    name="trials",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("trials",),
    answered=3,
    verified_by="judge",
    settings={"search": "local"},
    longest={"max_trials": 100},
    impossible={"max_trials": 0, "memory_size": 0, "actor": "trials", "min_score": 1.5, "experience": ""},
    refused=("verify_sources",),
)
