"""The settings and the typed state of `graphs.memory`."""

from typing import Annotated, Any, NotRequired

from pydantic import BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict

from state.context import Context
from state.memories import Kind
from state.run import Output, RunState


def _is_embeddings(value: Any) -> Any:
    if value is None or isinstance(value, str) or hasattr(value, "aembed_documents"):
        return value or None
    raise ValueError("embeddings are a string such as 'lexical' or 'openai:<model>', or an object of LangChain's")


Embeddings = Annotated[
    Any,
    BeforeValidator(_is_embeddings),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}),
]
"""A string that names embeddings, or in Python an object of LangChain's."""


class MemoryContext(Context):
    """Settings of `graphs.memory`. The weights are those of the published code: in a conversation relevance counts
    most."""

    user: str = Field(
        default="default",
        min_length=1,
        max_length=200,
        description="Whose memories these are; those of other users are never seen.",
    )
    retrieved: int = Field(default=10, ge=0, le=100, description="Most memories that an answer is given.")
    recency: float = Field(default=0.5, ge=0, le=100, description="Weight of recency in retrieval.")
    importance: float = Field(default=2, ge=0, le=100, description="Weight of importance in retrieval.")
    relevance: float = Field(default=3, gt=0, le=100, description="Weight of relevance in retrieval.")
    reflect_at: float = Field(
        default=150, ge=0, le=100_000, description="Importance of new memories beyond which the agent reflects on them."
    )
    max_memories: int = Field(default=10_000, ge=10, le=1_000_000, description="Most memories kept of a user.")
    embeddings: Embeddings = Field(
        default=None,
        description="Embeddings: 'minilm', 'lexical', or '<provider>:<model>'. "
        "Default: REFLECT_EMBEDDINGS, else minilm if it is installed, else lexical.",
    )

    @property
    def remembers(self) -> bool:
        """Always: that is what it is for."""
        return True


class Recalled(TypedDict):
    """A memory that an answer was given as [m<number>], and whether the answer cites it.

    `because` holds the texts of what a reflection rests on. `created` is in seconds since 1970. `score` and the three
    terms that make it are in 0..1.
    """

    number: int
    id: str
    kind: Kind
    text: str
    because: list[str]
    created: float
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

    `user` is whose thread it is.
    """

    user: NotRequired[str]
    perceived: list[str]
    reply: str
    said: str | None
