"""Agents that look at what they did and do better: each strategy is a compiled LangGraph graph.

from reflective_agents.graphs.lats import graph
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reflective_agents.state import shipped

if TYPE_CHECKING:
    from reflective_agents.state.answer_schema import parsed as parsed


def _environments() -> Mapping[str, Any]:
    from reflective_agents.environments.registry import ENVIRONMENTS

    return ENVIRONMENTS


def _rankings() -> Sequence[str]:
    from reflective_agents.memory.rankings import names

    return names()


shipped.environments, shipped.rankings = _environments, _rankings


def __getattr__(name: str) -> Any:
    """Import what is used by its name alone: the package itself loads in no time."""
    if name != "parsed":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reflective_agents.state.answer_schema import parsed

    return parsed
