"""How memories are ranked: one file each, found by its name, with the ranking as RANKING."""

import pkgutil
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reflective_agents.memory.rankings.base import Ranking


def names() -> list[str]:
    """Return the names of the rankings; none is loaded."""
    return [module.name for module in pkgutil.iter_modules(__path__) if module.name != "base"]


def named(name: str, **weights: float) -> "Ranking":
    """Return the ranking with a name, with some of its weights replaced. Only this loads numpy."""
    ranking: Ranking = import_module(f"{__name__}.{name}").RANKING
    return replace(ranking, **weights)
