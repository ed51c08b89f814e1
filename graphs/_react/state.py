"""The typed state of `graphs.react`."""

from typing import Annotated, NotRequired

from langgraph.channels import DeltaChannel

from reflective_agents.environments.base import State
from reflective_agents.nodes.acting.actions import ActionStep
from reflective_agents.nodes.acting.react_text import ParsedStep
from reflective_agents.state.lists import append
from reflective_agents.state.run import Output, latest
from reflective_agents.state.trial import ActingState


class ReactState(ActingState):
    """State of a run: the world as the last action left it, and the steps taken, which are the artefact. `said` is the
    id of the message under which the answer was streamed, if it was; `guess` an answer that followed an action before
    its result was known, or one that was `sent_back` as it cites what does not exist."""

    world: State
    request: Annotated[str, DeltaChannel(latest, snapshot_frequency=1000)]
    hints: str
    steps: Annotated[list[ActionStep], DeltaChannel(append, snapshot_frequency=1000)]
    move: ParsedStep | None
    sent_back: NotRequired[bool]
    said: NotRequired[str | None]
    guess: NotRequired[str | None]
    reward: float | None


class ReactOutput(Output):
    """What a run returns. `reward` (0..1) is the environment's; None where there is none."""

    steps: list[ActionStep]
    reward: float | None
