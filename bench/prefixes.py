"""How long prompts are, and how much of them a run sends anew: `python -m bench.prefixes`, for docs/search.md.

What an earlier request of the run began with, a provider finds in its cache.
"""

import asyncio
import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.options import parser_of
from bench.rows import Row
from bench.scripts import QUESTION, TASK, playing, reading, searching, unsolvable
from bench.strategies import EACH
from reflective_agents.graphs import graph_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Request, Script

OWED = 20
"""Most of a run's prompt tokens, in percent, that no earlier request of the run has begun with."""
LIMITS: dict[str, Any] = {"n": 5, "max_model_calls": 300, "max_total_tokens": 10**9}
OFFLINE = ("react", "reflexion", "lats", "tree_of_thoughts", "rap", "trials", "plan", "team")
"""Strategies whose prompts are measured with the offline model, on one question."""


class Prompts(NamedTuple):
    """The calls of a run, the tokens of their prompts on average, and the share of them that is new, from 0 to 1."""

    calls: int
    tokens: float
    new: float


@dataclass(frozen=True)
class Setting:
    """A run whose prompts are measured."""

    name: str
    script: Script
    given: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)
    owed: float | None = None
    strategy: str = "lats"


def _asked(question: str) -> dict[str, Any]:
    return {"messages": [("user", question)]}


READING = Setting("questions", reading, {**_asked("q"), "task": TASK}, {**LIMITS, "environment": "questions"}, OWED)
SETTINGS = [
    READING,
    Setting("questions, judged together", reading, READING.given, {**READING.settings, "grading": "together"}),
    Setting("open questions", searching, _asked("How do agents learn from failures?"), {**LIMITS, "search": "local"}),
    Setting("game of 24", playing, _asked("4 5 6 10"), {**LIMITS, "environment": "game24"}, OWED),
    Setting("nothing to search, each judged alone", unsolvable, QUESTION, EACH),
    Setting("three drafts and their critiques", unsolvable, QUESTION, {"max_rounds": 3}, strategy="reflection"),
]


def measure_prefixes() -> list[Row]:
    """Measure LATS with 5 candidates, on each kind of tasks."""
    searches = [setting for setting in SETTINGS if setting.strategy == "lats"]
    return [
        Row(
            f"Prompt tokens sent anew: {setting.name}",
            100 * asyncio.run(measured(setting)).new,
            "%",
            setting.owed,
            digits=1,
        )
        for setting in searches
    ]


async def measured(setting: Setting) -> Prompts:
    """Measure the prompts of a run."""
    model = FakeChatModel(reply=setting.script)
    out = await graph_of(setting.strategy).ainvoke(setting.given, context={**setting.settings, "model": model})
    usage = out["usage"]
    return Prompts(usage["model_calls"], usage["input_tokens"] / usage["model_calls"], new_share(model.calls))


def new_share(requests: Sequence[Request]) -> float:
    """Calculate the share of all prompts that no earlier prompt began with, by characters."""
    seen: list[str] = []
    new = total = 0
    for prompt in map(as_sent, requests):
        prefix = max((_in_common(prompt, earlier) for earlier in seen), default=0)
        new, total = new + len(prompt) - prefix, total + len(prompt)
        seen.append(prompt)
    return new / total


def _in_common(first: str, second: str) -> int:
    """Count the characters with which two texts both begin."""
    return bisect_left(range(1, min(len(first), len(second)) + 1), True, key=lambda size: first[:size] != second[:size])


def as_sent(request: Request) -> str:
    """Return a prompt in the order in which a provider reads it: the tools, then the messages."""
    tools = [[name, request.schemas.get(name)] for name in request.tools]
    messages = [[message.type, message.content, getattr(message, "tool_calls", [])] for message in request.messages]
    return json.dumps(tools) + "".join(json.dumps(message, ensure_ascii=False) for message in messages)


async def table(settings: Sequence[Setting], offline: Sequence[str]) -> str:
    """Format the table; how much the offline model's prompts share is not measured."""
    rows = ["| run | calls | tokens a call | prefix |", "|---|--:|--:|--:|"]
    for setting in settings:
        found = await measured(setting)
        cells = f"{found.calls} | {found.tokens:,.0f} | {1 - found.new:.0%}"
        rows.append(f"| `{setting.strategy}`, {setting.name} | {cells} |")
    for name in offline:
        context = {"model": "offline", "search": "local"}
        usage = (await graph_of(name).ainvoke(_asked("Why is reflection useful in AI?"), context=context))["usage"]
        cells = f"{usage['model_calls']} | {usage['input_tokens'] / usage['model_calls']:,.0f}"
        rows.append(f"| `{name}`, offline | {cells} | |")
    return "\n".join(rows)


def main() -> None:
    """Print the table."""
    quick = parser_of("bench.prefixes", __doc__).parse_args().quick
    print(asyncio.run(table(SETTINGS[-2:], OFFLINE[:1]) if quick else table(SETTINGS, OFFLINE)))


if __name__ == "__main__":
    main()
