"""The state of a run of `graphs.auto`: that of a tree search, and what the other stages have found."""

from typing import Annotated, Literal, NotRequired

from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from reflective_agents.graphs.chain_of_thought import Sample
from reflective_agents.state.limits import Limit
from reflective_agents.state.lists import append
from reflective_agents.state.outcome import Rung
from reflective_agents.state.support import Support
from reflective_agents.state.tree import SearchOutput, SearchState
from reflective_agents.web_search.results import SearchResult

Stage = Literal["sample", "look_up", "climb", "search", "conclude", "trial"]
STAGES: tuple[Stage, ...] = ("sample", "look_up", "climb", "search", "conclude", "trial")
"""The stages, from cheap to dear."""


class Attempt(Sample):
    """A sampled answer with what the environment says of it: a reward of 0..1, None where there is none.

    Verifiers of the user's count as an environment does, the lower score of the two, and both observations; `accepted`
    is there if they were asked, and `rewarded`, and false, if the reward is theirs alone. `rung` is there above the
    lowest rung of a ladder of models.
    """

    reward: float | None
    observation: str
    accepted: NotRequired[bool]
    rewarded: NotRequired[bool]
    rung: NotRequired[int]


class Turn(TypedDict):
    """One decision: what comes next (empty at the end), why, and the calls that were spent before it."""

    stage: str
    why: str
    model_calls: int


class LookedUp(TypedDict):
    """The evidence: an answer with citations, the id of its message, the results that were found, whether they support
    it, where that was checked, `declined`: whether it only says that there is no answer, by its outcome, and `rung`:
    that of the model of a ladder that has looked things up."""

    answer: str
    said: str | None
    sources: list[SearchResult]
    support: NotRequired[Support]
    declined: NotRequired[bool]
    rung: NotRequired[int]


class AutoOutput(SearchOutput):
    """What a run returns: beside the tree the sampled answers, the evidence, and the decisions."""

    samples: Annotated[list[Attempt], DeltaChannel(append, snapshot_frequency=1000)]
    evidence: LookedUp | None
    turns: Annotated[list[Turn], DeltaChannel(append, snapshot_frequency=1000)]


class AutoState(SearchState, AutoOutput):
    """State of a run of `graphs.auto`.

    `search_over` says why the tree search has ended, empty before; `limit` is the limit that has ended a stage,
    `concluded` tells whether the tree's best trajectory was asked for its answer, `trials` counts the reflections, and
    `better` the rollouts when the best answer was found. `longest` holds the tokens of each stage's longest answer.
    `rungs` are the models of a ladder that were given up.
    """

    search_over: str
    limit: Limit | None
    concluded: bool
    trials: int
    better: int
    longest: dict[Stage, int]
    rungs: list[Rung]
