"""How each strategy ends with each awkward server: `python -m bench.awkward` prints the table of docs/small-models.md.

The model behind the server is the strategy's own script, which solves the question within a few calls. So whatever
does not end as it should is the server's doing.
"""

import asyncio
import os
from collections import defaultdict
from typing import Any

from tenacity import wait_none

from bench.options import parser_of
from reflective_agents.models import faults
from reflective_agents.models.capabilities import forget_capabilities
from reflective_agents.models.providers import close_models
from reflective_agents.testing.awkward import MANNERS, AwkwardServer, Manner
from tests.strategies import ASK, STRATEGIES, Result
from tests.strategies.base import Strategy

MOST_CALLS = 60


async def meet(strategy: Strategy, manner: Manner) -> tuple[Result, AwkwardServer]:
    """Run a strategy against an awkward server, whose address the environment has to name; nothing is known of it."""
    forget_capabilities()
    async with AwkwardServer(strategy.solving, manner) as server:
        os.environ["OPENAI_BASE_URL"] = server.base_url
        context = strategy.make(model="openai:test", max_model_calls=MOST_CALLS)
        result = await strategy.graph.ainvoke(ASK, context=context)
    return result, server


async def ends_with(manner: Manner) -> dict[str, dict[str, Any]]:
    """Return the outcome of every strategy with a server of this manner."""
    try:
        return {strategy.name: (await meet(strategy, manner))[0]["outcome"] for strategy in STRATEGIES}
    finally:
        await close_models()


def row(manner: Manner, outcomes: dict[str, dict[str, Any]]) -> str:
    """Return a line of the table: the end state of each strategy."""
    return f"| `{manner}` | {' | '.join(outcomes[strategy.name]['status'] for strategy in STRATEGIES)} |"


def lacking(manner: Manner, outcomes: dict[str, dict[str, Any]]) -> list[str]:
    """Return a line for each reason of runs that have failed, which names what the server lacks."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for name, outcome in outcomes.items():
        if outcome["status"] == "failed":
            reasons[outcome["reason"]].append(f"`{name}`")
    return [f"| `{manner}` | {', '.join(names)} | {reason} |" for reason, names in reasons.items()]


def main() -> None:
    """Print both tables: how the runs end, and why those failed that have."""
    options = parser_of("bench.awkward", __doc__).parse_args()
    faults.WAIT = wait_none()
    os.environ["OPENAI_API_KEY"] = "test"
    print(f"| the server | {' | '.join(f'`{strategy.name}`' for strategy in STRATEGIES)} |")
    print("|---" * (len(STRATEGIES) + 1) + "|")
    failed: list[str] = []
    for manner in MANNERS[:1] if options.quick else MANNERS:
        outcomes = asyncio.run(ends_with(manner))
        print(row(manner, outcomes), flush=True)
        failed += lacking(manner, outcomes)
    print("\n| the server | failed | the reason |\n|---|---|---|", *failed, sep="\n")


if __name__ == "__main__":
    main()
