"""A model for `graphs.memory`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request
from tests.strategies.base import Strategy, mark


def script(request: Request) -> Reply:
    if request.schema == "Facts":
        return {"facts": []}
    return f"Answer on [{mark(request)}]: reflection finds mistakes."


STRATEGY = Strategy(
    name="memory",
    solving=script,
    endless=script,
    artefact=(),
    further=("memories",),
    answered=1,
    settings={"user": "shared tests", "retrieved": 0, "reflect_at": 100_000, "embeddings": "lexical"},
    impossible={"user": "", "retrieved": 101, "relevance": 0, "max_memories": 9, "embeddings": 7},
    calls=2,
    endless_calls=False,
    answer_stands=True,
    streams=True,
)
