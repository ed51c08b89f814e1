"""What an agent remembers, as plain data, and what models are asked to fill in about it."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Literal, NamedTuple
from uuid import NAMESPACE_OID, uuid4, uuid5

from pydantic import BaseModel, Field, StringConstraints, create_model
from typing_extensions import TypedDict

from state.errors import Misuse

Kind = Literal["observation", "reflection", "plan"]
KINDS: tuple[Kind, ...] = ("observation", "reflection", "plan")
LEAST, MOST = 1.0, 10.0
"""Bounds of importance: from everyday to life-changing."""


class Memory(TypedDict):
    """One memory (Generative Agents, section 4.1). All but `accessed` and `archived` never changes.

    `created` and `accessed` are seconds of the agent's own clock, whatever its origin. `importance` is 1..10.
    `evidence` holds the ids of the memories that it was drawn from. An archived memory is one that a reflection rests
    on: ordinary retrieval leaves it out, and it is found through the reflection.
    """

    id: str
    kind: Kind
    text: str
    created: float
    accessed: float
    importance: float
    evidence: list[str]
    archived: bool


class Mark(NamedTuple):
    """A place in a stream, between two memories: in the order of creation, and of ids where that is the same."""

    created: float
    id: str


BEGINNING = Mark(-math.inf, "")


def new_memory(
    text: str,
    *,
    created: float,
    kind: Kind = "observation",
    importance: float = LEAST,
    evidence: Sequence[str] = (),
    key: str | None = None,
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

    Raises:
        Misuse: if the text is empty, the importance is out of its bounds, or a number is not finite.
    """
    text = text.encode(errors="ignore").decode().replace("\0", "").strip()
    if not text:
        raise Misuse("a memory needs a text")
    if not LEAST <= importance <= MOST:
        raise Misuse(f"importance is {LEAST:g}..{MOST:g}, not {importance}")
    if not math.isfinite(created):
        raise Misuse(f"the time of a memory is a finite number of seconds, not {created}")
    return Memory(
        id=uuid4().hex if key is None else memory_id(key),
        kind=kind,
        text=text,
        created=float(created),
        accessed=float(created),
        importance=float(importance),
        evidence=list(dict.fromkeys(evidence)),
        archived=False,
    )


def memory_id(key: str) -> str:
    """The id of the memory with this key: 32 hexadecimal digits."""
    return uuid5(NAMESPACE_OID, key).hex


Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Rating = Annotated[int, Field(ge=LEAST, le=MOST)]
Number = Annotated[int, Field(json_schema_extra={"minimum": 1})]
"""A memory's number in a prompt. Whether it was given is checked for each insight, so that one wrong number does not
spoil the others."""


class Ratings(BaseModel):
    """The importance of each memory, in the order of their numbers."""

    ratings: list[Rating] = Field(
        description="For each memory, from 1 (everyday, such as brushing teeth) to 10 (life-changing)."
    )


@cache
def ratings_of(count: int) -> type[Ratings]:
    """The form for the importance of exactly so many memories."""
    described = Field(min_length=count, max_length=count, description=Ratings.model_fields["ratings"].description)
    return create_model("Ratings", __base__=Ratings, __doc__=Ratings.__doc__, ratings=(list[Rating], described))


class Questions(BaseModel):
    """The three most salient high-level questions that the memories can answer."""

    questions: list[Sentence] = Field(min_length=3, max_length=3, description="Three questions, each a sentence.")


class Insight(BaseModel):
    """A conclusion that goes beyond what each single memory says."""

    insight: Sentence = Field(description="The conclusion, one sentence that can be understood on its own.")
    evidence: list[Number] = Field(min_length=1, description="Numbers of the memories that it follows from.")
    importance: Rating = Field(description="How much it matters, from 1 (hardly) to 10 (life-changing).")


class Insights(BaseModel):
    """Five insights that follow from the memories."""

    insights: list[Insight] = Field(min_length=5, max_length=5)
