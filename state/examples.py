"""Worked examples of one's own, as the settings give them."""

from typing import Annotated, NotRequired

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict


@with_config(ConfigDict(extra="forbid"))
class OwnExample(TypedDict):
    """A task, and how it is solved: by `acts`, each a thought, an action and its observation, for agents that act; by a
    `reasoning` that ends in the answer, for those that answer at once."""

    task: Annotated[str, Field(min_length=1)]
    acts: NotRequired[list[tuple[str, str, str]]]
    reasoning: NotRequired[str]
