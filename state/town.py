"""A town of agents: the settings, the town as data, and the typed state of `graphs.town`."""

from typing import Annotated, Any, Literal, NotRequired

from langgraph.channels import DeltaChannel
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from typing_extensions import TypedDict

from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.memories import Memory
from reflective_agents.state.run import Output, RunState, latest
from reflective_agents.state.tree import append

Name = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[^<>\"\n]{1,60}$")]
Clock = Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$|^24:00$")]
"""A time of the day, `HH:MM`."""


def minutes_of(clock: str) -> int:
    """Parse a time of day into minutes after midnight."""
    return 60 * int(clock[:2]) + int(clock[3:])


def clock_of(minutes: float) -> str:
    """Format minutes after midnight as the time of day."""
    return f"{int(minutes) // 60:02}:{int(minutes) % 60:02}"


# The town as data


class Strict(BaseModel):
    """Data that a person writes: what it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid")


class Place(Strict):
    """A place of the map. It takes a step of the clock to go from one to another."""

    name: Name
    about: str = Field(default="", max_length=500)


class Knowledge(Strict):
    """Something that an agent remembers from before."""

    text: str = Field(min_length=1, max_length=1000)
    importance: float = Field(default=5, ge=1, le=10)


class Persona(Strict):
    """An agent: who it is, where it lives, what it usually does, and what it remembers from before."""

    name: Name
    about: str = Field(min_length=1, max_length=1000)
    home: Name
    usual: list[Annotated[str, StringConstraints(min_length=1, max_length=300)]] = Field(
        default_factory=list, max_length=48
    )
    knows: list[Knowledge] = Field(default_factory=list, max_length=100)


class Town(Strict):
    """A town for a day. `opening` is what the first agent is told where nobody says anything else, and `fact` the words
    by which a memory shows that its agent knows of the news that may spread."""

    name: Name
    begins: Clock = "07:00"
    ends: Clock = "22:00"
    opening: str = "It is a day like any other."
    fact: str = ""
    places: list[Place] = Field(min_length=1, max_length=100)
    agents: list[Persona] = Field(min_length=1, max_length=50)

    @model_validator(mode="after")
    def _fits_together(self) -> "Town":
        places, agents = [place.name for place in self.places], [agent.name for agent in self.agents]
        for what, names in (("place", places), ("agent", agents)):
            if len({name.casefold() for name in names}) < len(names):
                raise ValueError(f"each {what} needs a name of its own")
        if strangers := [agent.name for agent in self.agents if agent.home not in places]:
            raise ValueError(f"no home in this town: {', '.join(strangers)}")
        if minutes_of(self.begins) >= minutes_of(self.ends):
            raise ValueError("the day ends before it begins")
        return self


# Settings


# State

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
