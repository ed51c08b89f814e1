"""The strategies, as the shared tests run them: each has a module in here, which gives it all of these tests."""

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig

from tests.strategies.base import Strategy as Strategy
from tests.strategies.base import marks as marks

Result = dict[str, Any]
QUESTION = "Why does reflection help? [alpha]"
ASK: dict[str, Any] = {"messages": [("user", QUESTION)]}
STRATEGIES: list[Strategy] = [
    import_module(f"{__name__}.{module.name}").STRATEGY
    for module in pkgutil.iter_modules(__path__)
    if module.name != "base"
]


def name_of(value: object) -> str | None:
    """How a strategy is named among a test's parameters."""
    return value.name if isinstance(value, Strategy) else None


SEARCHING = [strategy for strategy in STRATEGIES if strategy.searches]
ENDLESS = [strategy for strategy in STRATEGIES if strategy.endless_calls]
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=name_of)
THROUGHOUT = "react"
"""The strategy that meets every case: it calls tools and fills in forms, with code that the others share."""
TREES = ("lats", "tree_of_thoughts", "rap", "ab_mcts", "best_of_n")
"""Those that share one engine: together they meet every case once."""


def every_case(
    name: str,
    values: Iterable[Any],
    among: Sequence[Strategy] = STRATEGIES,
    ids: Callable[[Any], Any] = str,
    turns: int = 9,
) -> pytest.MarkDecorator:
    """Parametrize with strategies and cases: that of `THROUGHOUT` with all, the others in turns.

    Each case comes to three of them, a tree search among these, and each of them meets some of the cases, so that the
    tests stay quick; with fewer `turns` to more of them.
    """
    cases = list(values)

    def meets(strategy: Strategy, case: int) -> bool:
        if strategy.name == THROUGHOUT:
            return True
        every = min(len(TREES) if strategy.name in TREES else 9, turns, len(cases))
        return (among.index(strategy) + case) % every == 0

    pairs = [
        pytest.param(strategy, case, id=f"{strategy.name}-{ids(case)}")
        for strategy in among
        for number, case in enumerate(cases)
        if meets(strategy, number)
    ]
    return pytest.mark.parametrize(("strategy", name), pairs)


def ring(*steps: int) -> pytest.MarkDecorator:
    """Parametrize with strategies and others that stand so many places after them: each comes as often as the rest."""
    pairs = [
        pytest.param(strategy, other, id=f"{strategy.name}-{other.name}")
        for step in steps
        for strategy, other in zip(STRATEGIES, [*STRATEGIES[step:], *STRATEGIES[:step]], strict=True)
    ]
    return pytest.mark.parametrize(("strategy", "other"), pairs)


every_endless = pytest.mark.parametrize("strategy", ENDLESS, ids=name_of)
every_searching = pytest.mark.parametrize("strategy", SEARCHING, ids=name_of)


def thread(name: str = "t") -> RunnableConfig:
    """The config that names a thread."""
    return {"configurable": {"thread_id": name}}
