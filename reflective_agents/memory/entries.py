"""What the index of a memory holds of each, and what it finds."""

from typing import NamedTuple

from reflective_agents.state.memories import Kind, Topic


class Entry(NamedTuple):
    """What the index holds of a memory; `words` are those of its text, as `memory.postings.pack` packs them; `asks` is
    whether it ends with a question."""

    id: str
    kind: Kind
    created: float
    importance: float
    evidence: tuple[str, ...] = ()
    speaker: str = ""
    conversation: str = ""
    supersedes: tuple[str, ...] = ()
    words: bytes = b""
    topic: Topic | None = None
    asks: bool = False


class Match(NamedTuple):
    """The id of a memory that was retrieved, its score, and the three normalised terms that make it."""

    id: str
    score: float
    recency: float
    importance: float
    relevance: float
