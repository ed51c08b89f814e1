"""A model for `graphs.ab_mcts`, and what to expect of it."""

import re

from reflective_agents.testing.script import Reply, Request
from tests.strategies import lats
from tests.strategies.base import Strategy


def script(request: Request, solves: bool) -> Reply:
    """The second answer is solved, wherever it stands: the prompt of one beside the first is the same once more."""
    if request.schema == "Judgement":
        work = request.last.rpartition("<trajectory>")[2]
        good = solves and (work.count("<answer") >= 2 or re.search(r"(?i)answer \d+-\d+-[1-9]", work) is not None)
        return {"reasoning": "So.", "score": 0.9 if good else 0.4, "solved": good}
    return lats.script(request, solves)


STRATEGY = Strategy(
    name="ab_mcts",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("tree", "stats", "log", "expansions"),
    further=("lessons",),
    rewarded=True,
    answered=2,
    verified_by="judge",
    settings={"search": "none"},
    fan_out={"parallel": 50, "max_expansions": 1000},
    longest={"max_expansions": 10_000, "max_depth": 100},
    impossible={"prior": 0, "arms": "offline", "parallel": 65, "max_expansions": -1, "min_score": 1.5},
)
