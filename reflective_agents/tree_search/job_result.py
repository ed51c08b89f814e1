"""What came of one job of a tree search."""

from dataclasses import dataclass, field

from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.tree import Lesson
from reflective_agents.tree_search.base import Child

Stop = LimitReached | ModelFailed


@dataclass
class JobResult:
    """What came of a job.

    Attributes:
        children: The nodes that were made or judged.
        lessons: What was learned from those that failed.
        keys: The first node in each new state, by the state's key.
        stops: The limits and faults that stopped some of the work.
        merged: How many candidates were equal to others.
        refused: Why steps could not be carried out.
        guess: An answer that followed an action, before its result was known; empty if none did.
        fruitless: Whether there is nothing that the tree search could go on with.
        calls, tokens: The cost.
    """

    children: list[Child] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    stops: list[Stop] = field(default_factory=list)
    merged: int = 0
    refused: list[str] = field(default_factory=list)
    guess: str = ""
    fruitless: bool = False
    calls: int = 0
    tokens: int = 0
