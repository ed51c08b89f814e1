"""A model for `graphs.team`, and what to expect of it."""

import re

from reflective_agents.testing.script import Reply, Request
from tests.strategies.base import Strategy, mark


def script(request: Request, solves: bool) -> Reply:
    """The second report is the one that is accepted."""
    if request.schema == "Delegation":
        numbers = [int(number) for number in re.findall(r'<candidate number="(\d+)"', request.last)]
        best = max(numbers, default=0)
        good = solves and best == 2
        tasks = [] if good else [{"to": "solver", "task": f"Answer {best + 1} on [{mark(request)}]."}]
        judged = {"critique": "Good." if good else "Too short.", "score": 0.9 if good else 0.4}
        return {**judged, "best": best, "done": good, "tasks": tasks}
    return f"Answer: {request.last.removeprefix('Question: ')} Reflection finds mistakes."


STRATEGY = Strategy(
    name="team",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("rounds",),
    answered=2,
    verified_by="judge",
    settings={
        "search": "none",
        "roles": [{"name": "solver", "instructions": "Solve it.", "strategy": "chain_of_thought"}],
    },
    longest={"max_rounds": 100},
    impossible={"max_rounds": 0, "shape": "crowd", "roles": [{"name": "a b", "instructions": "So."}]},
    calls=5,
    leads=("Delegation", "free"),
)
