"""The typed state of `graphs.town`."""

from typing import Annotated, Any, Literal, NotRequired

from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.lists import append
from reflective_agents.state.memories import Memory
from reflective_agents.state.run import Output, RunState, latest

How = Literal["before", "told", "plan", "own", "seen", "said", "heard", "reflection"]
"""How an agent came by a memory: from before, from its inner voice, by planning, by what it did, by what it saw of
another, by what it said or heard in a conversation, or by reflecting."""


class Remembered(Memory):
    """A memory with how its agent came by it. `source` is the other agent it came from, if any; `talk` numbers the
    conversation, 0 for none."""

    agent: str
    step: int
    how: How
    source: str
    talk: int


class Planned(TypedDict):
    """A part of a plan: from when until when (minutes of the day), what, and where; "" as long as that is open.
    `importance` (1..10) is what it has as a memory."""

    start: int
    end: int
    what: str
    place: str
    importance: NotRequired[float]


class Mind(TypedDict):
    """What becomes of an agent from step to step, beside its memories.

    `strokes` is its plan for the day, `hours` and `actions` are the parts that were decomposed so far and are still to
    come. `seen` is what it last saw each other agent do, `talked` when it last talked to each (minutes of the day).
    `mark` is up to where its observations were reflected on.
    """

    agent: str
    place: str
    doing: str
    strokes: list[Planned]
    hours: list[Planned]
    actions: list[Planned]
    seen: dict[str, str]
    talked: dict[str, int]
    mark: list[Any]


class Moment(TypedDict):
    """A row of the timeline: what an agent does in a step, and where. `talk` numbers its conversation, 0 for none."""

    step: int
    time: str
    agent: str
    place: str
    doing: str
    talk: int


class Line(TypedDict):
    """Something said in a conversation."""

    agent: str
    text: str


class Conversation(TypedDict):
    """A conversation: when, where, between whom, why it was begun, and what was said."""

    talk: int
    step: int
    time: str
    place: str
    agents: list[str]
    why: str
    lines: list[Line]


class Found(TypedDict):
    """A memory that was retrieved, its score, and the three normalised terms that make it, all in 0..1."""

    id: str
    score: float
    recency: float
    importance: float
    relevance: float


class Retrieval(TypedDict):
    """What an agent retrieved, for what, and when."""

    agent: str
    step: int
    time: str
    query: str
    found: list[Found]


class Portrait(TypedDict):
    """An agent at the end of the run, with all its memories, those in the archive too, in the order of creation."""

    name: str
    about: str
    place: str
    plan: list[Planned]
    memories: list[Remembered]


class Knows(TypedDict):
    """Whether an agent knows of the fact at the end: the id and text of the first memory that shows it, when it came,
    and the way by which it came, from whom it began down to this agent. All empty if it does not know."""

    agent: str
    knows: bool
    memory: str
    text: str
    time: str
    way: list[str]


class TownOutput(Output):
    """What a run returns: the timeline, the conversations, the agents with their memories, and who knows of the fact.
    Only what changes is stored at each step."""

    day: Annotated[list[Moment], DeltaChannel(append, snapshot_frequency=1000)]
    conversations: Annotated[list[Conversation], DeltaChannel(append, snapshot_frequency=1000)]
    retrievals: Annotated[list[Retrieval], DeltaChannel(append, snapshot_frequency=1000)]
    agents: list[Portrait]
    spread: list[Knows]


class TownState(RunState, TownOutput):
    """State of a run.

    `ticks` counts the steps of the clock. `remembered` is everything that was ever remembered: the memories in the
    store are made of it, one step later, so that what a killed step has begun leaves no trace there.
    """

    town: Annotated[JsonObject, DeltaChannel(latest, snapshot_frequency=1000)]
    told: Annotated[str, DeltaChannel(latest, snapshot_frequency=1000)]
    ticks: int
    minds: Annotated[list[Mind], DeltaChannel(latest, snapshot_frequency=1000)]
    remembered: Annotated[list[Remembered], DeltaChannel(append, snapshot_frequency=1000)]
