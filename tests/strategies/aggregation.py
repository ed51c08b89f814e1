"""A model for `graphs.aggregation`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request
from tests.strategies.base import Strategy, mark


def script(request: Request) -> Reply:
    """Look something up once; merge answers into one that more agree on."""
    if request.schema == "Queries":
        return {"queries": ["reflection", "mistakes"]}
    merged = request.text.count("</attempt>")
    return f"Sample {request.index} of {merged} thinks.\nAnswer: reflection finds mistakes, on [{mark(request)}]"


STRATEGY = Strategy(
    name="aggregation",
    solving=script,
    endless=script,
    artefact=("candidates", "sources"),
    answered=2,
    settings={"search": "local", "population": 2, "rounds": 2},
    fan_out={"population": 50},
    longest={"population": 1, "rounds": 100},
    impossible={"population": 0, "group": 0, "rounds": 0, "comparisons": 0, "search": "yahoo"},
    refused=("docstore",),
    rewarded=True,
    calls=5,
    roles=2,
    begins_with_a_form=True,
    votes=True,
)
