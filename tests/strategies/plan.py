"""A model for `graphs.plan`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request
from tests.strategies.base import Strategy, mark


def script(request: Request, solves: bool) -> Reply:
    """Of the first plan one sub-goal is reached and one is not; what the next plans try is reached at last."""
    if request.schema == "Plan":
        number = request.text.count("<subgoal")
        goals = ["Find one", "Try"] if number == 0 else ["Try again"]
        names = enumerate(goals, number + 1)
        return {
            "subgoals": [{"id": f"{n}", "goal": f"{goal}: {n} [{mark(request)}]", "needs": []} for n, goal in names]
        }
    if "The results:" in request.last:
        return f"All in all on [{mark(request)}]: reflection finds mistakes."
    reached = "Find" in request.last or (solves and "again" in request.last)
    return f"Answer: {'Reflection finds mistakes' if reached else 'IMPOSSIBLE: nothing was found'}"


STRATEGY = Strategy(
    name="plan",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("subgoals",),
    answered=3,
    settings={"search": "none", "worker": "chain_of_thought"},
    longest={"max_replans": 100},
    impossible={"max_subgoals": 0, "max_replans": -1, "worker": "plan", "worker_settings": {"max_rounds": 3}},
    calls=6,
    streams=True,
    leads=("Plan", "free"),
)
