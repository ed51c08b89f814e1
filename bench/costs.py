"""What a question that is never solved costs each strategy at its defaults: `python -m bench.costs`.

A scripted model answers each call after 50 ms and solves nothing, so that each run goes on until something stops it.
Tokens are a quarter of the characters of what is sent and answered.
"""

import asyncio
from typing import NamedTuple
from uuid import uuid4

from bench.options import parser_of
from reflective_agents.testing.fake import FakeChatModel
from tests.strategies import STRATEGIES
from tests.strategies.base import Strategy

QUESTION = {"messages": [("user", "Why does reflection help? [alpha]")]}
LATENCY = 0.05
"""Seconds of each call, so that those which can be in flight together are."""
QUICK = ("embeddings", "search")
"""Settings that keep a run off the network; they cost no calls."""


class Cost(NamedTuple):
    """What one run has cost: calls, the longest chain of them, and tokens."""

    calls: int
    waves: int
    tokens: int


async def cost_of(strategy: Strategy) -> Cost:
    """Run a strategy at its defaults with a model that never solves anything."""
    model = FakeChatModel(reply=strategy.endless, latency=LATENCY)
    settings = {name: strategy.settings[name] for name in QUICK if name in strategy.settings}
    if "user" in strategy.settings:
        settings["user"] = str(uuid4())  # nobody the process remembers, since memories cost calls
    out = await strategy.graph.ainvoke(QUESTION, context=strategy.context(model=model, **settings))
    return Cost(out["usage"]["model_calls"], model.waves, out["usage"]["total_tokens"])


def main() -> None:
    """Print what each strategy costs, as docs/strategies.md shows it."""
    options = parser_of("bench.costs", __doc__).parse_args()
    print("| strategy | calls | waves | tokens |\n|---|--:|--:|--:|", flush=True)
    for strategy in STRATEGIES[:2] if options.quick else STRATEGIES:
        print(f"| `{strategy.name}` | {' | '.join(map(str, asyncio.run(cost_of(strategy))))} |", flush=True)


if __name__ == "__main__":
    main()
