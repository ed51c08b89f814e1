"""The version of the state: what an earlier release has stored is brought up to date when it is read.

A run that is resumed keeps the channels it began with, so its state is read through `upgraded` until it ends; the next
question on the thread begins with the state of today. To change the shape of stored state: count `VERSION` up, and add
a function to `UPGRADES` that makes the new shape of the old one, and changes nothing when it is called again.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from reflective_agents.state.errors import WrongThread
from reflective_agents.state.json_types import JsonMapping

S = TypeVar("S", bound=JsonMapping)

VERSION = 1
"""What runs of this release write."""

UPGRADES: dict[int, Callable[[Any], Any]] = {}
"""By version: the function that turns a state of that version into one of the next, where its shape has changed."""


def upgraded(state: S) -> S:
    """Return a state in the shape of this release.

    Raises:
        WrongThread: if a newer release has written it.
    """
    written = state.get("version") or VERSION  # none before the first node of a run has noted it
    if written > VERSION:
        raise WrongThread(
            f"this thread was written by a newer release (state version {written}, here {VERSION}): "
            "update reflective-agents, or choose another thread"
        )
    for version in range(written, VERSION):
        if version in UPGRADES:
            state = UPGRADES[version](state)
    return state
