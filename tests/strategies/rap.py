"""A model for `graphs.rap`, and what to expect of it."""

import re

from reflective_agents.testing.script import Reply, Request
from tests.graphs.rap_scripts import tagged
from tests.strategies.base import Strategy, mark


def script(request: Request, solves: bool) -> Reply:
    """After one sub-question the whole may be answered, by each path alike or never so."""
    if request.schema == "Usefulness":
        steps = re.findall(r'<candidate number="\d+">\n(.*)\n', request.text)
        return {"scores": [0.9 if "Now" in step else round(0.8 / number, 2) for number, step in enumerate(steps, 1)]}
    count, number = request.last.count("<asked "), request.index + request.attempt + (request.n == 1)
    if "Write sub-question" in request.last:
        last = count and number % 2 == 0
        return "Now we can answer the question." if last else f"What is {count}.{number}, for [{mark(request)}]?"
    if "Answer this sub-question" in request.last:
        return f"So.\nAnswer: {count}.{number}"
    if "Phrase it for the user" in request.last:
        return tagged("answer", request.last)[-1]
    way = "" if solves else f", by way {request.key[:8]}"
    return f"So.\nAnswer: On [{mark(request)}]: reflection finds mistakes{way}."


STRATEGY = Strategy(
    name="rap",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("tree", "stats", "log", "expansions", "weights"),
    further=("lessons",),
    rewarded=True,
    answered=9,
    settings={"search": "local", "n": 2, "confidence_samples": 1, "examples": False, "proposals": "samples"},
    fan_out={"n": 50},
    longest={"max_rollouts": 10_000, "max_expansions": 10_000, "max_depth": 100},
    impossible={
        "n": 0,
        "alpha": 2,
        "aggregate": "sum",
        "confidence_samples": 0,
        "max_rollouts": 0,
        "proposals": "so",
        "search": "yahoo",
    },
    refused=("docstore",),
    calls=11,
)
