"""Names that somebody may have meant."""

import difflib
from collections.abc import Iterable

_LONGEST = 100
"""Characters of a name: to compare longer ones would take long, and nobody means them."""


def similar_names(name: str, known: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return known names that a name resembles, the closest first.

    Args:
        name: What was written; a name of more than 100 characters resembles none.
        known: The names that there are.
        count: At most so many.
        cutoff: How similar they have to be, from 0 to 1.
    """
    return difflib.get_close_matches(name, list(known), count, cutoff) if len(name) <= _LONGEST else []
