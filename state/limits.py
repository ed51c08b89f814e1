"""A limit that ended a run, as data and as a sentence."""

from typing import NotRequired

from typing_extensions import TypedDict

NANO = 1_000_000_000
"""Nano-dollars of a dollar: money is counted in whole ones."""


class Limit(TypedDict):
    """A limit that was met: the setting's name, the most it allows, and what was spent.

    `needed` is what the next step might have cost, where there was something left, but not enough.
    """

    name: str
    most: float
    spent: float
    needed: NotRequired[float]


def sentence(limit: Limit, detail: str = "") -> str:
    """Say in a sentence which limit was met, with the numbers: every text about a limit is made here.

    Args:
        limit: The limit.
        detail: What else there is to say, if anything.
    """
    counter = limit["name"].removeprefix("max_")
    # As people write numbers: neither 1e+06 nor 0.30000000000000004.
    digits = 6 if counter.endswith("cost") else 1
    numbers = f"{counter}={round(limit['spent'], digits):.10g}"
    if next_cost := limit.get("needed"):
        numbers += f", the next step may need {round(next_cost, digits):.10g}"
    text = f"{limit['name']}={limit['most']:.10g} reached ({numbers})"
    return f"{text}; {detail}" if detail else text
