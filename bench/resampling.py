"""Intervals of means by resampling (Efron's bootstrap), where what is measured comes in groups."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DRAWS = 2000


def interval(groups: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Estimate a 95 % interval of the mean by resampling groups, and within each its values."""
    chance, means = np.random.default_rng(1), []
    for _ in range(DRAWS):
        drawn = [groups[index] for index in chance.integers(len(groups), size=len(groups))]
        means.append(np.concatenate([chance.choice(group, len(group)) for group in drawn]).mean())
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
