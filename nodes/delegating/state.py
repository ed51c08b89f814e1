"""Strategies that let others work: the typed state of `graphs.plan` and `graphs.team`."""

from typing import Annotated, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.channels import DeltaChannel
from langgraph.channels.topic import Topic
from typing_extensions import TypedDict

from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.limits import Limit
from reflective_agents.state.lists import replaced_by
from reflective_agents.state.run import Output, RunState, Usage

# What workers are sent and send back


class Allowance(TypedDict):
    """What a worker may spend: its share of what the run may still spend."""

    max_model_calls: int
    max_total_tokens: int
    max_seconds: float
    max_cost: NotRequired[float]


class Assignment(TypedDict):
    """What is sent to a worker. `settings` are those that the run was given, for when it is resumed; `sources` are the
    addresses of what others have found, in the order of their numbers."""

    number: int
    name: str
    task: str
    messages: list[AnyMessage]
    sources: NotRequired[list[str]]
    allowance: Allowance
    settings: JsonObject


class Report(TypedDict):
    """What a worker sends back. `answer` is None if it failed; `said` is the id of the answer's message.

    `status`, `reason` and `limit` are those of the worker's outcome. `unfounded` names what the answer has referred to
    and nobody has found; `answered` is there, and false, if the answer only declares that there is none; `passages` is
    what the sources say that it cites, by their addresses.
    """

    number: int
    name: str
    strategy: str
    task: str
    answer: str | None
    said: str | None
    status: str
    reason: str
    limit: NotRequired[Limit]
    unfounded: NotRequired[list[str]]
    answered: NotRequired[bool]
    passages: NotRequired[dict[str, str]]
    usage: Usage


class CooperationState(RunState):
    """State of strategies that let others work; the reports are gone once the next node has taken them in."""

    reports: Annotated[list[Report], Topic(dict)]


# Plans


class Subgoal(TypedDict):
    """A sub-goal of a run and what came of it.

    `plan` numbers the plan that it is of, and `wave` the wave in which it was worked on, both from 1; `wave` is 0 and
    `usage` None until then. `dropped` is what a later plan has replaced before it was begun. `said` is the id of the
    answer's message, and `passages` is what the sources say that it cites, by their addresses.
    """

    number: int
    id: str
    goal: str
    needs: list[str]
    plan: int
    wave: int
    worker: str
    status: Literal["open", "done", "failed", "dropped"]
    answer: str | None
    said: str | None
    reason: str
    passages: NotRequired[dict[str, str]]
    usage: Usage | None


class PlanState(CooperationState):
    """State of a run; the sub-goals are its artefact."""

    subgoals: Annotated[list[Subgoal], DeltaChannel(replaced_by("number"), snapshot_frequency=1000)]
    plans: int
    waves: int


class PlanOutput(Output):
    """What a run returns."""

    subgoals: list[Subgoal]


# Teams


class Round(TypedDict):
    """A round of a team's work: who reported what, and what the supervisor or the judge said of it.

    `best` is the number of the report they call the best so far, 0 if none; `score` (0..1) is what they give it, None
    if nobody was asked.
    """

    round: int
    reports: list[Report]
    critique: str
    best: int
    score: float | None


class TeamState(CooperationState):
    """State of a run; the rounds are its artefact."""

    shape: str
    rounds: Annotated[list[Round], DeltaChannel(replaced_by("round"), snapshot_frequency=1000)]


class TeamOutput(Output):
    """What a run returns."""

    rounds: list[Round]
