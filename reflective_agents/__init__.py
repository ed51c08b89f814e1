"""Agents that look at what they did and do better: each strategy is a compiled LangGraph graph.

from reflective_agents.graphs.lats import graph
"""

from collections.abc import Mapping
from typing import Any

from reflective_agents.state import shipped


def _environments() -> Mapping[str, Any]:
    from reflective_agents.environments.registry import ENVIRONMENTS

    return ENVIRONMENTS


shipped.environments = _environments
