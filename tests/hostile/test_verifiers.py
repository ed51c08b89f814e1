"""Verifiers that never end, print or return without end, or demand what takes ever longer to look at."""

import json
from typing import Any

import pytest

from reflective_agents.graphs.reflection import graph
from reflective_agents.testing.fake import FakeChatModel

pytestmark = pytest.mark.hostile


def program(text: str) -> str:
    return f"```python\n{text}\n```"


def checks_of(*tests: str) -> dict[str, Any]:
    return {"tests": list(tests), "entry_point": "solve"}


ONE, IS_ONE = program("def solve():\n    return 1"), "assert solve() == 1"
PROGRAMS: dict[str, tuple[dict[str, Any], str]] = {
    "a test without end": (checks_of("while True: pass", IS_ONE), ONE),
    "a test that prints 100 MB": (checks_of("print('x' * 10**8); assert False"), ONE),
    "a message of 100 MB": (checks_of("assert False, 'x' * 10**8"), ONE),
    "a test that forks": (checks_of("import os\nwhile True: os.fork()"), ONE),
    "a test that leaves": (checks_of("raise SystemExit(0)"), ONE),
    "a test of 8 GB": (checks_of("x = [0] * 10**9"), ONE),
    "an answer without end": (checks_of(IS_ONE), program("def solve():\n    while True: pass")),
    "an answer that prints 100 MB": (checks_of(IS_ONE), program("def solve():\n    print('x' * 10**8)")),
    "an answer of 100 MB": (checks_of(IS_ONE), program("def solve():\n    return 'x' * 10**8")),
}
TEXTS: dict[str, Any] = {"type": "string", "pattern": "^(a+)+$"}
SELF: dict[str, Any] = {"type": "object", "properties": {"x": {"$ref": "#"}}, "additionalProperties": False}
DATA: dict[str, tuple[dict[str, Any], str]] = {
    "a pattern that backtracks": (
        {"schema": {"type": "object", "properties": {"x": TEXTS}}},
        json.dumps({"x": "a" * 39_000 + "!"}),
    ),
    "levels": ({"schema": SELF}, '{"x":' * 900 + "{}" + "}" * 900),
    "brackets": ({"schema": {"type": "object"}}, "{" * 40_000),
    "words": ({"max_words": 3}, "a " * 20_000),
    "a pattern": ({"pattern": "(a|a)*b"}, "a" * 39_000),
}


async def status(verifier: dict[str, Any], answer: str) -> str:
    context: Any = {"model": FakeChatModel(reply=lambda _: answer), "critic": "checks", "verifiers": [verifier]}
    limits = {"max_rounds": 1, "verifier_timeout": 3, "max_seconds": 60}
    out = await graph.ainvoke({"messages": [("user", "Why?")]}, context=context | limits)
    return str(out["outcome"]["status"])


@pytest.mark.thorough
@pytest.mark.sandbox
@pytest.mark.parametrize("name", PROGRAMS)
async def test_programs_are_bounded_and_accept_nothing(name: str) -> None:
    assert await status(*PROGRAMS[name]) in ("exhausted", "limit_reached")


@pytest.mark.parametrize("name", DATA)
async def test_data_are_looked_at_at_once_and_accept_nothing(name: str) -> None:
    assert await status(*DATA[name]) in ("exhausted", "limit_reached")
