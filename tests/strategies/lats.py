"""A model for `graphs.lats`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies.base import Strategy, judgement, mark, marks


def script(request: Request, solves: bool) -> Reply:
    if request.schema == "Judgement":
        return judgement(request.last, solves)
    if request.schema == "Judgements":
        shown = next(message.text for message in request.messages if "<candidate " in message.text)  # before retries
        path, *candidates = shown.split("<candidate ")
        return {"judgements": [judgement(f"{path}{candidate}", solves) for candidate in candidates]}
    depth = sum(message.type == "ai" and not marks([message]) for message in request.messages)
    number = request.index + request.attempt
    name = f"{request.n}-{request.index}-{request.attempt}"
    if "search" in request.tools and request.tool_choice != "none" and (depth == 0 or number % 5 == 4):
        return ToolUse("search", {"query": f"reflection {name}"})
    revises = any(message.type == "ai" and not getattr(message, "tool_calls", None) for message in request.messages[2:])
    kind = "Revised answer" if revises else "Answer"
    return f"{kind} {name} after {len(request.messages)} messages on [{mark(request)}]: reflection finds mistakes."


STRATEGY = Strategy(
    name="lats",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("tree", "stats", "log", "expansions"),
    further=("lessons",),
    rewarded=True,
    answered=8,
    verified_by="judge",
    settings={"search": "local"},
    fan_out={"n": 50},
    longest={"max_expansions": 10_000, "max_depth": 100},
    impossible={"n": 0, "max_expansions": -1, "min_score": 1.5, "search": "yahoo", "parallel": 0, "simulate": "so"},
)
