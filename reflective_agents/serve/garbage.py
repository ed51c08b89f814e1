"""Garbage collection of a server: what it holds for good is not looked through again and again."""

import gc
from typing import Literal

YOUNG = 5_000
"""Objects more than there were before Python looks for garbage among the new ones; its own 700 are too few for runs."""
_FIRST = 6
"""Full collections until everything is loaded: clients of models and schemas come with the first runs."""


def spare_what_stays() -> None:
    """Exempt what the first full collections leave from those that follow.

    Modules, graphs and schemas are some 400,000 objects, and each look at them holds up all requests. What a run holds
    at such a moment is freed as ever when nothing refers to it; only if it refers to itself in a circle it stays.
    """
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
    gc.collect()
    gc.freeze()
    left = _FIRST

    def spare(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        nonlocal left
        if phase == "stop" and info["generation"] == 2:
            gc.freeze()
            left -= 1
            if not left:
                gc.callbacks.remove(spare)

    gc.callbacks.append(spare)
