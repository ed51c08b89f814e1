"""What settings may name and other folders ship.

Settings import nothing from above them: `reflective_agents/__init__.py`, which stands above everything, fills this in.
"""

from collections.abc import Callable, Mapping
from typing import Any

environments: Callable[[], Mapping[str, Any]]
"""Returns the shipped environments by name. Called only when a setting names one, since loading them takes a second."""
