"""A model for `graphs.best_of_n`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies.base import Strategy, actions, mark


def script(request: Request, solves: bool) -> Reply:
    """Trajectories that search once, or for ever; the judge takes the first answer, or none."""
    if request.schema == "Judgement":
        return {"reasoning": "So.", "score": 0.9 if solves else 0.4, "solved": solves}
    taken = actions(request)
    name = f"{request.n}-{request.index}-{request.attempt}-{taken}"
    if "search" in request.tools and request.tool_choice != "none" and taken == 0:
        return ToolUse("search", {"query": f"reflection {name}"})
    return f"Answer {name} on [{mark(request)}]: reflection finds mistakes."


STRATEGY = Strategy(
    name="best_of_n",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("tree", "stats", "log", "expansions"),
    further=("lessons",),
    rewarded=True,
    answered=3,
    verified_by="judge",
    settings={"search": "local", "n": 2, "parallel": 1},
    fan_out={"n": 50, "parallel": 50},
    given_up="refused|max_depth",
    longest={"n": 100, "max_expansions": 10_000, "max_depth": 100},
    impossible={"n": 0, "parallel": 65, "max_expansions": -1, "min_score": 1.5, "search": "yahoo"},
)
