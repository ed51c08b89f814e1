"""How far a run that wants 50 calls at once goes beyond its limits: not at all."""

import asyncio
from typing import Any

from bench.rows import Row
from bench.scripts import QUESTION
from bench.strategies import LATS, MODEL
from bench.wire import Counters, Server
from graphs.lats import graph
from models.providers import close_models
from state.context import LatsContext

AT_ONCE = 50
LIMITS: dict[str, Any] = {"max_model_calls": 80, "max_total_tokens": 30_000}


def measure_limits(server: Server) -> list[Row]:
    """LATS with 50 candidates, whose judges want to be called at once."""
    calls = asyncio.run(_spend(server, {"max_model_calls": LIMITS["max_model_calls"]})).calls
    tokens = asyncio.run(_spend(server, {"max_total_tokens": LIMITS["max_total_tokens"]})).tokens
    return [
        Row(
            f"Calls beyond max_model_calls, {AT_ONCE} candidates at once",
            max(calls - LIMITS["max_model_calls"], 0),
            "",
            0,
        ),
        Row(
            f"Tokens beyond max_total_tokens, {AT_ONCE} candidates at once",
            max(tokens - LIMITS["max_total_tokens"], 0),
            "",
            0,
        ),
    ]


async def _spend(server: Server, limit: dict[str, int]) -> Counters:
    before = server.counters()
    context = LatsContext(**{**LATS, "model": MODEL, "n": AT_ONCE, "max_answer_tokens": 150, **limit})
    await graph.ainvoke(QUESTION, context=context)
    await close_models()
    return server.counters() - before
