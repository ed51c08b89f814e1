"""What settings may name and other folders ship.

Settings import nothing from above them: `reflective_agents/__init__.py`, which stands above everything, fills this in.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

environments: Callable[[], Mapping[str, Any]]
"""Returns the shipped environments by name. Called only when a setting names one, since loading them takes a second."""
rankings: Callable[[], Sequence[str]]
"""Returns the names of the shipped rankings of memories; none is loaded."""
