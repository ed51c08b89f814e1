"""How memories are ranked (Generative Agents, section 4.1): the weights of the three terms, and what the terms are."""

import math
from typing import NamedTuple

from reflective_agents.state.errors import Misuse


class Ranking(NamedTuple):
    """How memories are ranked: how much each term counts, of which only the ratios matter, and what the terms are.

    By default they are the paper's: recency since the last access, relevance as the cosine, and what is in the archive
    left out. `hybrid` finds better what was said (see `memory.hybrid`, docs/memory.md): relevance by words as well as
    meaning, recency by the logarithm of the age, and the archive at a lower rank.
    """

    recency: float = 1.0
    importance: float = 1.0
    relevance: float = 1.0
    hybrid: bool = False

    @property
    def weights(self) -> tuple[float, float, float]:
        """The weights of the three terms."""
        return self.recency, self.importance, self.relevance

    def check(self) -> "Ranking":
        """Check this ranking and return it.

        Raises:
            Misuse: if a weight is negative or not finite, or all are 0.
        """
        if not all(math.isfinite(weight) and weight >= 0 for weight in self.weights) or not any(self.weights):
            raise Misuse(f"weights are numbers of 0 or more, and not all 0: {self.weights}")
        return self


PAPER = Ranking()
"""As the paper has it."""
PUBLISHED = Ranking(recency=0.5, importance=2.0, relevance=3.0)
"""As the paper's published code has it."""
HYBRID = Ranking(recency=0.3, importance=0.6, relevance=3.0, hybrid=True)
"""What finds most of what was said long ago, and of two statements that fit alike the later one."""
