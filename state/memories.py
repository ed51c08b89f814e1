"""What an agent remembers, as plain data, and what models are asked to fill in about it."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, NotRequired
from uuid import NAMESPACE_OID, uuid4, uuid5

from pydantic import BaseModel, Field, StringConstraints
from typing_extensions import TypedDict

from reflective_agents.state.errors import Misuse

Kind = Literal["observation", "reflection", "plan", "fact"]
KINDS: tuple[Kind, ...] = ("observation", "reflection", "plan", "fact")
Topic = Literal["name", "family", "diet", "health", "home", "work", "preference", "commitment", "other"]
TOPICS: tuple[Topic, ...] = ("name", "family", "diet", "health", "home", "work", "preference", "commitment", "other")
"""What a fact is about; all but the last make up the profile of a user."""
LEAST, MOST = 1.0, 10.0
"""Bounds of importance: from everyday to life-changing."""
FARTHEST = 6e10
"""Seconds before or after 1970 that a calendar can show: about 1,900 years."""


class Memory(TypedDict):
    """One memory (Generative Agents, section 4.1). All but `accessed` and `archived` never changes.

    `created` and `accessed` are seconds of the agent's own clock, whatever its origin. `importance` is 1..10.
    `evidence` holds the ids of the memories that it was drawn from. An archived memory is one that a reflection rests
    on: it is found through the reflection, and on its own at a lower rank.

    What was said in a conversation has a `speaker` and the `conversation`, and `created` is then in seconds since 1970.
    A fact is `about` somebody or something, on a `topic` if that is known, and holds `since` some time, in words ("May
    2026"); `supersedes` names the earlier ones that it replaces. `until` is since when a memory no longer holds,
    because another superseded it, or what it rests on.
    """

    id: str
    kind: Kind
    text: str
    created: float
    accessed: float
    importance: float
    evidence: list[str]
    archived: bool
    speaker: NotRequired[str]
    conversation: NotRequired[str]
    about: NotRequired[str]
    topic: NotRequired[Topic]
    since: NotRequired[str]
    supersedes: NotRequired[list[str]]
    until: NotRequired[float]


class Mark(NamedTuple):
    """A place in a stream, between two memories: in the order of creation, and of ids where that is the same."""

    created: float
    id: str


BEGINNING = Mark(-math.inf, "")


def check_time(seconds: float) -> None:
    """Refuse a time that no calendar can show.

    Raises:
        Misuse: if it is too far away, or no number.
    """
    # Turned round, so that it catches NaN as well, which compares as false.
    if not abs(seconds) <= FARTHEST:
        raise Misuse(f"the time of a memory is a finite number of seconds up to {FARTHEST:g}, not {seconds}")


def new_memory(
    text: str,
    *,
    created: float,
    kind: Kind = "observation",
    importance: float = LEAST,
    evidence: Sequence[str] = (),
    key: str | None = None,
    speaker: str = "",
    conversation: str = "",
    about: str = "",
    topic: Topic | None = None,
    since: str = "",
    supersedes: Sequence[str] = (),
) -> Memory:
    """Make a memory, which no stream knows yet.

    Args:
        text: What is remembered. What no database can store (NUL, half a surrogate pair) is taken out.
        created: Seconds of the agent's clock.
        kind: An observation, a reflection on other memories, or a plan.
        importance: 1..10.
        evidence: Ids of the memories that it was drawn from.
        key: What makes it the same memory when the same work is done again, unique within the agent's memory: the
            id follows from it, and a stream adds an id once. Default: a memory of its own each time.
        speaker: Who said it, by name.
        conversation: Where it was said: turns of one conversation are neighbours.
        about: Whom or what a fact is about.
        topic: On what: `TOPICS`. Default: unknown.
        since: When a fact holds, in words.
        supersedes: Ids of the memories that no longer hold because of it.

    Raises:
        Misuse: if the text is empty, the importance is out of its bounds, or a number is not finite.
    """
    text = _storable(text)
    if not text:
        raise Misuse("a memory needs a text")
    if not LEAST <= importance <= MOST:
        raise Misuse(f"importance is {LEAST:g}..{MOST:g}, not {importance}")
    check_time(created)
    memory = Memory(
        id=uuid4().hex if key is None else memory_id(key),
        kind=kind,
        text=text,
        created=float(created),
        accessed=float(created),
        importance=float(importance),
        evidence=list(dict.fromkeys(evidence)),
        archived=False,
    )
    if speaker := _storable(speaker):
        memory["speaker"] = speaker
    if conversation := _storable(conversation):
        memory["conversation"] = conversation
    if about := _storable(about):
        memory["about"] = about
    if topic:
        memory["topic"] = topic
    if since := _storable(since):
        memory["since"] = since
    if supersedes:
        memory["supersedes"] = list(dict.fromkeys(supersedes))
    return memory


def _storable(text: str) -> str:
    return text.encode(errors="ignore").decode().replace("\0", "").strip()


def memory_id(key: str) -> str:
    """Return the id of the memory with this key: 32 hexadecimal digits."""
    return uuid5(NAMESPACE_OID, key).hex


MOST_FACTS = 20
"""Facts that one turn of a conversation may hold."""
Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Rating = Annotated[int, Field(ge=LEAST, le=MOST)]
Number = Annotated[int, Field(json_schema_extra={"minimum": 1})]
"""A memory's number in a prompt. Whether it was given is checked for each insight, so that one wrong number does not
spoil the others."""


class Fact(BaseModel):
    """Something worth knowing later about the user or the world."""

    about: Sentence = Field(description="Whom or what it is about: 'the user', or a name.")
    statement: Sentence = Field(
        description="One sentence that says one thing and can be understood on its own, in the words of the user, with "
        "dates in the place of 'today' or 'last week'."
    )
    topic: Topic = Field(
        default="other",
        description="What it says of the user: name, family, diet, health, home, work, preference, commitment (with "
        "its date), or other.",
    )
    since: str = Field(default="", description="Since when it holds, or when it happened, as far as was said.")
    importance: Rating = Field(description="How much it will help later, from 1 (hardly) to 10 (very much).")
    supersedes: list[Number] = Field(
        default_factory=list, description="Numbers of the known facts that no longer hold because of it."
    )
    remains: list[Sentence] = Field(
        default_factory=list,
        description="What of these known facts still holds, said anew: one sentence for each thing. Empty if nothing.",
    )


class Facts(BaseModel):
    """What is worth keeping of what the user said; often nothing."""

    facts: list[Fact] = Field(max_length=MOST_FACTS, description="Each fact once; an empty list if there is none.")


MOST_LOOK_UPS = 8
"""Look-ups that a model may formulate from one message."""


class LookUps(BaseModel):
    """What to look up in a memory beside the message itself; often nothing."""

    queries: list[Sentence] = Field(
        max_length=MOST_LOOK_UPS, description="Each a short text; an empty list where the message itself is the best."
    )


class Questions(BaseModel):
    """The most salient high-level questions that the memories can answer."""

    questions: list[Sentence] = Field(min_length=1, max_length=3, description="Three questions, each a sentence.")


class Insight(BaseModel):
    """A conclusion that goes beyond what each single memory says."""

    insight: Sentence = Field(description="The conclusion, one sentence that can be understood on its own.")
    evidence: list[Number] = Field(min_length=1, description="Numbers of the memories that it follows from.")
    importance: Rating = Field(description="How much it matters, from 1 (hardly) to 10 (life-changing).")


class Insights(BaseModel):
    """One to five insights that follow from the memories."""

    insights: list[Insight] = Field(min_length=1, max_length=5)
