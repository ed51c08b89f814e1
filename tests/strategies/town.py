"""A model for `graphs.town`, and what to expect of it."""

import re
from typing import Any

from reflective_agents.testing.script import Reply, Request
from tests.strategies.base import Strategy

HAMLET: dict[str, Any] = {
    "name": "Hamlet",
    "begins": "07:00",
    "ends": "08:00",
    "fact": "mistakes",
    "places": [{"name": "House"}],
    "agents": [{"name": "Ada", "about": "Ada thinks.", "home": "House"}],
}


def script(request: Request, step: int) -> Reply:
    """One agent does something else in each step."""
    if request.schema == "DayPlan":
        return {"strokes": [{"start": "07:00", "what": "thinks"}]}
    if request.schema == "HourPlan":
        return {"hours": [{"start": "00:00", "what": "thinks", "place": "House"}]}
    if request.schema == "Actions":
        (hour,) = re.findall(r"<time>\n(\d\d)", request.text)
        steps = range(0, 60, step)
        return {"actions": [{"minutes": step, "what": f"thinks {hour}:{past}", "place": "House"} for past in steps]}
    raise AssertionError(f"nobody asks for {request.schema}")


STRATEGY = Strategy(
    name="town",
    solving=lambda request: script(request, step=30),
    endless=lambda request: script(request, step=10),
    artefact=("day", "agents", "spread"),
    further=("conversations", "retrievals"),
    answered=3,
    settings={"town": HAMLET, "embeddings": "lexical", "reflect_at": 10_000},
    longest={"town": {**HAMLET, "begins": "00:00", "ends": "24:00"}, "minutes": 10, "max_steps": 10_000},
    impossible={"minutes": 0, "max_steps": 0, "max_turns": 0, "reflect_at": -1, "town": 7, "relevance": 0},
    refused=("experience", "experience_from", "experience_model", "judge_temperature", "memory_size"),
    calls=2,
    roles=2,
    leads=("DayPlan", "Actions"),
)
