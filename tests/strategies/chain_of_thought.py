"""A model for `graphs.chain_of_thought`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request
from tests.strategies.base import Strategy, mark


def script(request: Request) -> Reply:
    return f"Sample {request.index} thinks.\nAnswer: reflection finds mistakes, on [{mark(request)}]"


STRATEGY = Strategy(
    name="chain_of_thought",
    solving=script,
    endless=script,
    artefact=("samples",),
    further=("observation", "refused"),
    answered=1,
    settings={"search": "none", "samples": 3},
    fan_out={"samples": 50},
    impossible={"samples": 0, "environment": "chess", "max_context_tokens": 1},
    refused=("corpus", "docstore", "judge_temperature", "max_context_tokens", "search"),
    rewarded=True,
    calls=1,
    roles=1,
    endless_calls=False,
    votes=True,
)
