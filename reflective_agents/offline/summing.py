"""How the offline model sees that it is to summarise."""

import re

_LIMIT = re.compile(r"in at most (\d+) words\.\s*$")


def words_asked_for(request: str) -> int:
    """Return how many words a request for a summary allows; 0 if it asks for none."""
    found = _LIMIT.search(request)
    return int(found[1]) if found else 0
