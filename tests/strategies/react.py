"""A model for `graphs.react`, and what to expect of it."""

import math

from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.strategies.base import Strategy, actions, mark


def script(request: Request, most: float) -> Reply:
    """Searches so many times, and then answers."""
    taken = actions(request)
    if taken < most and request.tool_choice != "none":
        return ToolUse("search", {"query": f"reflection {taken}"})
    return f"Answer after {taken} searches on [{mark(request)}]: reflection finds mistakes."


STRATEGY = Strategy(
    name="react",
    solving=lambda request: script(request, most=2),
    endless=lambda request: script(request, most=math.inf),
    artefact=("steps",),
    answered=1,
    settings={"search": "local"},
    fan_out={"step_samples": 50},
    longest={"max_actions": 1000, "max_repeats": 1000},
    impossible={"max_actions": 0, "max_repeats": 0, "acting": "both", "environment": "chess", "search": "yahoo"},
    rewarded=True,
    roles=1,
    answers_last=True,
)
