"""What a search that plans returns beside its tree: the answers that its paths have come to, weighed."""

from typing import Annotated

from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from reflective_agents.state.run import latest
from reflective_agents.state.tree import SearchOutput, SearchState


class Weighed(TypedDict):
    """An answer that paths of a search have come to: the node where the best of them ends, how many there are, and the
    sum of their rewards, also as a share of that of all answers."""

    answer: str
    node: str
    paths: int
    weight: float
    share: float


class RapOutput(SearchOutput):
    """What `graphs.rap` returns: beside the tree the answers, the heaviest first."""

    weights: Annotated[list[Weighed], DeltaChannel(latest, snapshot_frequency=1000)]


class RapState(SearchState, RapOutput):
    """State of `graphs.rap`."""
