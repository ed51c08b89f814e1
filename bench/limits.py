"""How far a run that wants 50 calls at once goes beyond its limits: not at all."""

import asyncio
from itertools import product
from typing import Any

from bench.rows import Row
from bench.scripts import QUESTION
from bench.strategies import EACH, MODEL
from bench.wire import Counters, Server
from reflective_agents.graphs.lats import graph
from reflective_agents.models.providers import close_models
from reflective_agents.state.settings.lats import LatsContext

AT_ONCE = 50
LIMITS: dict[str, Any] = {"max_model_calls": 80, "max_total_tokens": 30_000}


def measure_limits(server: Server) -> list[Row]:
    """Measure LATS with 50 candidates, whose judges want to be called at once; and with 8 leaves of 5 candidates."""
    settings = {f"{AT_ONCE} candidates at once": {"n": AT_ONCE}, "8 leaves of 5 candidates at once": {"parallel": 8}}
    counted = {"max_model_calls": "calls", "max_total_tokens": "tokens"}
    rows: list[Row] = []
    for (name, value), (limit, what) in product(settings.items(), counted.items()):
        beyond = max(_spent(server, limit, value, what), 0)
        rows.append(Row(f"{what.capitalize()} beyond {limit}, {name}", beyond, "", 0))
    return rows


def _spent(server: Server, limit: str, given: dict[str, int], what: str) -> int:
    """Return how much more was spent than was allowed, as the server has counted it."""
    sent: int = getattr(asyncio.run(_spend(server, {limit: LIMITS[limit], **given})), what)
    return sent - int(LIMITS[limit])


async def _spend(server: Server, given: dict[str, int]) -> Counters:
    before = server.counters()
    context = LatsContext(**{**EACH, "max_expansions": 100, "model": MODEL, "max_answer_tokens": 150, **given})
    await graph.ainvoke(QUESTION, context=context)
    await close_models()
    return server.counters() - before
