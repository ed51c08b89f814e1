"""A model for `graphs.auto`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request
from tests.strategies import lats, reflexion
from tests.strategies.base import Strategy, judgement, mark


def script(request: Request, solves: bool) -> Reply:
    """Disagree in the samples, look up without coming to an end, and search as the model of LATS does."""
    if request.schema in ("AnswerQuestion", "ReviseAnswer"):
        return reflexion.script(request, solves=False)
    if "thinking step by step" in request.text:
        return f"Answer: sample {request.index}-{request.attempt} on [{mark(request)}]: reflection finds mistakes"
    if request.schema == "Judgements":  # where it is asked once more, the candidates do not stand last
        shown = next(message.text for message in reversed(request.messages) if "<candidate " in message.text)
        path, *candidates = shown.split("<candidate ")
        return {"judgements": [judgement(f"{path}{candidate}", solves) for candidate in candidates]}
    return lats.script(request, solves)


STRATEGY = Strategy(
    name="auto",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("evidence", "turns"),
    further=("tree", "stats", "log", "expansions", "samples", "lessons"),
    rewarded=True,
    answered=4,
    verified_by="sources",
    settings={"search": "local", "samples": 2},
    fan_out={"n": 48, "samples": 1},
    longest={"max_expansions": 10_000, "max_depth": 100, "call_cost": 0},
    impossible={"samples": 0, "call_cost": -1, "confidence": 1, "search": "yahoo", "max_trials": -1},
    refused=("selection",),
    roles=2,
    begins_with_a_form=True,
)
