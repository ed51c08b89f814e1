"""How much of its prompts a run sends anew: what an earlier request began with, a provider finds in its cache."""

import asyncio
import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.rows import Row
from bench.scripts import TASK, playing, reading, searching
from reflective_agents.graphs.lats import graph
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Request, Script

OWED = 20
"""Most of a run's prompt tokens, in percent, that no earlier request of the run has begun with."""


@dataclass(frozen=True)
class Setting:
    """A search whose prompts are measured."""

    name: str
    script: Script
    given: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)
    owed: float | None = None


def _asked(question: str) -> dict[str, Any]:
    return {"messages": [("user", question)]}


READING = Setting("questions", reading, {**_asked("q"), "task": TASK}, {"environment": "questions"}, OWED)
SETTINGS = [
    READING,
    Setting("questions, judged together", reading, READING.given, {"environment": "questions", "grading": "together"}),
    Setting("open questions", searching, _asked("How do agents learn from failures?"), {"search": "local"}),
    Setting("game of 24", playing, _asked("4 5 6 10"), {"environment": "game24"}, OWED),
]


def measure_prefixes() -> list[Row]:
    """Measure LATS with 5 candidates, on each kind of tasks."""
    return [
        Row(f"Prompt tokens sent anew: {one.name}", 100 * asyncio.run(new_in(one)), "%", one.owed, digits=1)
        for one in SETTINGS
    ]


async def new_in(setting: Setting) -> float:
    """Measure the share of a run's prompt tokens, from 0 to 1, that no earlier request began with."""
    model = FakeChatModel(reply=setting.script)
    limits = {"max_model_calls": 300, "max_total_tokens": 10**9}
    context = LatsContext.model_validate({"model": model, "n": 5, **limits, **setting.settings})
    await graph.ainvoke(setting.given, context=context)
    return new_share(model.calls)


def new_share(requests: Sequence[Request]) -> float:
    """Calculate the share of all prompts that no earlier prompt began with, by characters."""
    seen: list[str] = []
    new = total = 0
    for prompt in map(as_sent, requests):
        known = max((_in_common(prompt, earlier) for earlier in seen), default=0)
        new, total = new + len(prompt) - known, total + len(prompt)
        seen.append(prompt)
    return new / total


def _in_common(one: str, other: str) -> int:
    """Count the characters with which two texts both begin."""
    return bisect_left(range(1, min(len(one), len(other)) + 1), True, key=lambda size: one[:size] != other[:size])


def as_sent(request: Request) -> str:
    """Return a prompt in the order in which a provider reads it: the tools, then the messages."""
    tools = [[name, request.schemas.get(name)] for name in request.tools]
    messages = [[message.type, message.content, getattr(message, "tool_calls", [])] for message in request.messages]
    return json.dumps(tools) + "".join(json.dumps(message, ensure_ascii=False) for message in messages)
