"""A model for `graphs.tree_of_thoughts`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies.base import Strategy, mark, marks


def script(request: Request, solves: bool) -> Reply:
    """Plans and searches, and then answers; the judge takes the first answers, or none."""
    if request.schema == "Judgements":
        answers = ["<answer>" in candidate for candidate in request.text.split("<candidate ")[1:]]
        scores = [0.9 if answer and solves else 0.4 for answer in answers]
        return {"judgements": [{"reasoning": "So.", "score": score, "solved": score > 0.5} for score in scores]}
    depth = sum(message.type == "ai" and not marks([message]) for message in request.messages)
    number = request.index + request.attempt
    name = f"{request.n}-{request.index}-{request.attempt}"
    if "search" in request.tools and depth == 0 and number % 5 > 2:
        return ToolUse("search", {"query": f"reflection {name}"})
    if depth == 0 and "plan" in request.messages[0].text:
        return f"Plan {name}: begin with mistakes."
    return f"Answer {name} after {len(request.messages)} messages on [{mark(request)}]: reflection finds mistakes."


STRATEGY = Strategy(
    name="tree_of_thoughts",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("tree", "stats", "log", "expansions"),
    further=("lessons",),
    rewarded=True,
    answered=6,
    verified_by="judge",
    settings={"search": "local"},
    fan_out={"n": 50},
    longest={"max_expansions": 10_000, "max_depth": 100},
    impossible={
        "n": 0,
        "beam": 65,
        "max_depth": 0,
        "method": "so",
        "prune_below": 2,
        "max_states": 0,
        "search": "yahoo",
    },
)
