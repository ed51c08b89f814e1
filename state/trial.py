"""What strategies that act are given, and the record of a trial."""

from typing import NotRequired

from typing_extensions import TypedDict

from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.run import Input, RunState


class ActingInput(Input):
    """What a strategy that acts is given: beside the question a task, and advice from earlier attempts, as text.

    `task` is an `environments.base.Task`; without one the question itself is the task.
    """

    task: NotRequired[JsonObject | None]
    advice: NotRequired[str | None]


class ActingState(RunState, ActingInput):
    """State of a strategy that acts."""


class Trial(TypedDict):
    """One attempt from the start (Reflexion). `reward` is the environment's, `score` the judge's; either may be None.

    `outcome` is how the actor ended, `attempt` what was done, as text; `critique` holds the judge's reasons, and
    `reflection` the lesson drawn from it, empty if none was. `refused` is there, and true, if the answer was cut off,
    cannot be read, or is refused by the environment; `unsure`, if the judge's verdict contradicts itself; `verified`,
    if verifiers of the user's were asked: the score is then the lower of all, and the critique holds their words.
    `sources` are there for verifiers: what tools have found for the answer, by the marks that cite it.
    """

    trial: int
    answer: str | None
    reward: float | None
    score: float | None
    solved: bool
    outcome: str
    attempt: str
    critique: NotRequired[str]
    refused: NotRequired[bool]
    unsure: NotRequired[bool]
    verified: NotRequired[bool]
    sources: NotRequired[dict[str, str]]
    reflection: str
