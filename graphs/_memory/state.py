"""The typed state of `graphs.memory`."""

from typing import Annotated, NotRequired

from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from reflective_agents.state.lists import first_written
from reflective_agents.state.memories import Kind
from reflective_agents.state.run import Output, RunState


class Recalled(TypedDict):
    """A memory that an answer was given as [m<number>], and whether the answer cites it.

    `because` holds the texts of what a reflection or a fact rests on, as far as they are not shown elsewhere. `created`
    is in seconds since 1970, and so is `until`, since when it no longer holds; `since` says in words since when a fact
    does. `score` and the three terms that make it are in 0..1.
    """

    number: int
    id: str
    kind: Kind
    text: str
    because: list[str]
    speaker: NotRequired[str]
    created: float
    since: NotRequired[str]
    until: NotRequired[float | None]
    score: float
    recency: float
    importance: float
    relevance: float
    cited: bool


class MemoryOutput(Output):
    """What a run returns: the memories that its answer was given are its artefact, the best one first."""

    memories: list[Recalled]


class MemoryState(RunState, MemoryOutput):
    """State of a run: what was perceived, and the answer with the id under which it was streamed.

    `user` is whose thread it is, and `conversation` its name in the memory. `days` holds the day on which each of
    the user's messages was first seen, by its id.
    """

    user: NotRequired[str]
    conversation: NotRequired[str]
    days: Annotated[dict[str, str], DeltaChannel(first_written, snapshot_frequency=1000)]
    perceived: list[str]
    reply: str
    said: str | None
