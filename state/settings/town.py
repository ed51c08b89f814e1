"""The settings of `graphs.town`, and a town as data."""

from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from reflective_agents.state.context import Context, from_json
from reflective_agents.state.named import Embeddings
from reflective_agents.state.policy import TEXT, Operator

Name = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[^<>\"\n]{1,60}$")]
Clock = Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$|^24:00$")]
"""A time of the day, `HH:MM`."""


def minutes_of(clock: str) -> int:
    """Parse a time of day into minutes after midnight."""
    return 60 * int(clock[:2]) + int(clock[3:])


def clock_of(minutes: float) -> str:
    """Format minutes after midnight as the time of day."""
    return f"{int(minutes) // 60:02}:{int(minutes) % 60:02}"


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
        places = [place.name for place in self.places]
        agents = [agent.name for agent in self.agents]
        for what, names in (("place", places), ("agent", agents)):
            if len({name.casefold() for name in names}) < len(names):
                raise ValueError(f"each {what} needs a name of its own")
        if strangers := [agent.name for agent in self.agents if agent.home not in places]:
            raise ValueError(f"no home in this town: {', '.join(strangers)}")
        if minutes_of(self.begins) >= minutes_of(self.ends):
            raise ValueError("the day ends before it begins")
        return self


def _is_town(value: JsonValue | Town) -> Town | str:
    town = from_json(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
    if isinstance(town, dict):
        return Town.model_validate(town)
    if isinstance(town, (Town, str)) and town:
        return town
    raise ValueError("a town is the name of a shipped one, a JSON file, or the JSON itself")


def _no_path(value: JsonValue | Town) -> bool:
    """Tell whether a setting names no file: names of shipped towns have neither a dot nor a slash."""
    return not isinstance(value, str) or value.isidentifier()


Setting = Annotated[Any, BeforeValidator(_is_town), WithJsonSchema({"type": "string", "default": "lindenhof"})]
"""The name of a town, the path of its file, or in Python the town itself."""


class TownContext(Context):
    """Settings of `graphs.town`."""

    does: ClassVar[str] = "Lets a small town of agents live for a day, each with a memory of its own."
    use_when: ClassVar[str] = "you want to see how agents plan, meet, talk and pass on news"
    level: ClassVar[int | None] = None

    town: Annotated[Setting, Operator(_no_path)] = Field(
        default="lindenhof", description="The town: the name of a shipped one, a JSON file, or the JSON itself."
    )
    fact: Annotated[str | None, TEXT] = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Words by which a memory shows that its agent knows of the news. Default: the town's.",
    )
    minutes: int = Field(default=30, ge=1, le=240, description="Minutes that pass in one step of the clock.")
    max_steps: int = Field(default=200, ge=1, le=10_000, description="Most steps in one run.")
    max_turns: int = Field(default=4, ge=1, le=50, description="Most things said in one conversation.")
    talk_again: int = Field(
        default=180, ge=0, le=1440, description="Minutes before two agents who have talked may talk again."
    )
    retrieved: int = Field(default=6, ge=1, le=50, description="Memories retrieved for each decision.")
    reflect_at: float = Field(
        default=60,
        ge=0,
        le=100_000,
        description="Importance of new observations beyond which an agent reflects (150 in the paper's larger town).",
    )
    recency: float = Field(default=1, ge=0, le=100, description="Weight of recency in retrieval.")
    importance: float = Field(default=1, ge=0, le=100, description="Weight of importance in retrieval.")
    relevance: float = Field(default=1, gt=0, le=100, description="Weight of relevance in retrieval.")
    max_memories: int = Field(default=10_000, ge=10, le=1_000_000, description="Most memories that an agent keeps.")
    keep_memories: bool = Field(
        default=False, description="Whether the memories stay in the store when the day is over."
    )
    embeddings: Embeddings = Field(
        default=None,
        description="Embeddings: 'minilm', 'lexical', or '<provider>:<model>'. "
        "Default: REFLECT_EMBEDDINGS, else minilm if it is installed, else lexical.",
    )
    max_model_calls: int = Field(
        default=500, ge=1, le=100_000, description="Most requests to models in one run, retries included."
    )

    @field_validator("experience")
    @classmethod
    def _is_for_questions(cls, experience: str | None) -> str | None:
        if experience is not None:
            raise ValueError("lessons fit questions, and a town has none: leave it out")
        return experience
