"""A model for `graphs.reflection`, and what to expect of it."""

from reflective_agents.testing.script import Reply, Request
from tests.strategies.base import Strategy, mark


def script(request: Request, solves: bool) -> Reply:
    if request.schema == "Critique":
        good = solves and "Draft 2" in request.last.rpartition("<draft>")[2]
        return {"critique": "Good." if good else "Too short.", "score": 0.9 if good else 0.4, "accept": good}
    number = sum("<critique>" in message.text for message in request.messages) + 1
    return f"Draft {number} on [{mark(request)}]: reflection finds mistakes."


STRATEGY = Strategy(
    name="reflection",
    solving=lambda request: script(request, solves=True),
    endless=lambda request: script(request, solves=False),
    artefact=("drafts",),
    answered=2,
    verified_by="judge",
    longest={"max_rounds": 100},
    impossible={"max_rounds": 0, "min_words": 0, "critic": "nobody"},
)
