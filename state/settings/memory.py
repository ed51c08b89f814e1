"""The settings of `graphs.memory`."""

from typing import Annotated, ClassVar

from pydantic import Field

from reflective_agents.state.effect import Replication, only_with
from reflective_agents.state.families import SourcedContext
from reflective_agents.state.memories import MOST_LOOK_UPS
from reflective_agents.state.named import Embeddings, Rankings
from reflective_agents.state.policy import TEXT
from reflective_agents.state.verifiers import VerifiedContext


class MemoryContext(SourcedContext, VerifiedContext):
    """Settings of `graphs.memory`. Those of the paper are `ranking="paper"`, with the weights of its published code."""

    does: ClassVar[str] = "Talks with a user, remembers it, and answers from what it remembers."
    use_when: ClassVar[str] = "one user comes back, in other threads and on other days"
    level: ClassVar[int | None] = None

    user: Annotated[str, TEXT] = Field(
        default="default",
        min_length=1,
        max_length=200,
        description="Whose memories these are; those of other users are never seen.",
    )
    retrieved: int = Field(
        default=10,
        ge=0,
        le=100,
        description="Most memories that an answer is given. Facts that still hold come first; if they are more than "
        "this, a third of this number is left for the rest. 0 shows nothing.",
    )
    fact_tokens: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Most tokens, of two bytes each, of the facts that come first; at most a quarter of a prompt. "
        "Default: 4000; 0 as in the paper.",
    )
    memory_queries: Annotated[int, only_with("retrieved")] = Field(
        default=0,
        ge=0,
        le=MOST_LOOK_UPS,
        description="Most extra look-ups that the model derives from a message, with one more call; each memory "
        "counts at its best rank. 0 looks up only the message.",
    )
    ranking: Annotated[Rankings, Replication("Generative Agents")] = Field(
        default="hybrid",
        description="How memories are ranked: 'hybrid' by words and meaning, 'paper' as Generative Agents does, "
        "'store' by the store's own index, or in Python a ranking of your own.",
    )
    recency: float | None = Field(
        default=None, ge=0, le=100, description="Weight of recency in retrieval. Default: 0.3; 0.5 as in the paper."
    )
    importance: float | None = Field(
        default=None, ge=0, le=100, description="Weight of importance in retrieval. Default: 0.6; 2 as in the paper."
    )
    relevance: float | None = Field(
        default=None, gt=0, le=100, description="Weight of relevance in retrieval. Default: 3 in both."
    )
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
