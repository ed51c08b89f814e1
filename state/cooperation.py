"""Strategies that let others work: the settings and the typed state of `graphs.plan` and `graphs.team`."""

import json
from typing import Annotated, Any, Literal, Self

from langchain_core.messages import AnyMessage
from langgraph.channels.topic import Topic
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from state.context import (
    ChainOfThoughtContext,
    Context,
    Model,
    ReactContext,
    ReflectionContext,
    ReflexionContext,
    SearchContext,
    TrialsContext,
    from_json,
)
from state.run import Output, RunState, Usage
from state.searching import AbMctsContext, BestOfNContext, LatsContext, RapContext, TreeOfThoughtsContext

Worker = Literal[
    "react",
    "chain_of_thought",
    "reflection",
    "reflexion",
    "trials",
    "lats",
    "tree_of_thoughts",
    "rap",
    "ab_mcts",
    "best_of_n",
]
"""Strategies that a plan may set to work."""
Member = Literal[Worker, "plan"]
"""Strategies that a member of a team may work by. A team is no member of a team, so that nesting has an end."""


# Settings


NESTED = {"worker_settings", "roles"}
"""Settings that hold settings."""
Own = Annotated[dict[str, Any], BeforeValidator(from_json)]
"""Settings of another strategy by name; also as JSON, which is how the command and the environment give them."""


def _problems(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())


def _check_own(strategy: str, own: dict[str, Any]) -> None:
    try:
        SETTINGS[strategy].model_validate(own)
    except ValidationError as error:
        raise ValueError(f"{strategy} does not take that: {_problems(error)}") from error


def _plain(value: Any) -> Any:
    """A setting as plain data; None if it holds an object, which only Python can give."""
    if isinstance(value, Role):
        value = None if value.tools else value.model_dump(exclude_unset=True)
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        return None if None in items else items
    try:
        json.dumps(value)
    except TypeError:
        return None
    return value


class CooperationContext(SearchContext):
    """Settings of strategies that let others work. What all strategies share (model, search, corpus, timeouts) is
    handed on to them."""

    def given(self) -> dict[str, Any]:
        """As `Context.given`, with the nested settings that are plain data."""
        nested = {name: _plain(getattr(self, name)) for name in NESTED if name in self._given()}
        return super().given() | {name: value for name, value in nested.items() if value is not None}

    def resumed(self, earlier: dict[str, Any]) -> Self:
        """As `Context.resumed`; nested settings that are the same as earlier are not validated again at each node."""
        same = {name for name in NESTED & earlier.keys() if _plain(getattr(self, name)) == earlier[name]}
        return super().resumed({name: value for name, value in earlier.items() if name not in same})


class PlanContext(CooperationContext):
    """Settings of `graphs.plan`."""

    worker: Worker = Field(default="react", description="The strategy that works on each sub-goal.")
    worker_settings: Own | None = Field(
        default=None,
        description='Further settings of the worker, such as {"max_actions": 4} or a model of its own.',
    )
    max_subgoals: int = Field(default=5, ge=1, le=50, description="Most sub-goals in one plan.")
    max_replans: int = Field(default=2, ge=0, le=100, description="Most times that a failure leads to another plan.")
    tools: SkipJsonSchema[list[Any]] = Field(
        default_factory=list,
        exclude=True,
        description="In Python: tools of the worker beside the search and the calculator, if it takes any.",
    )

    @field_validator("worker_settings")
    @classmethod
    def _fit_the_worker(cls, own: dict[str, Any] | None, info: ValidationInfo) -> dict[str, Any] | None:
        if own and "worker" in info.data:
            _check_own(info.data["worker"], own)
        return own


class Role(BaseModel):
    """A member of a team: who it is, what it is there for, and how it works."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=r"^[\w-]{1,40}$", description="Its name: letters, digits, - and _.")
    instructions: str = Field(min_length=1, description="What it is there for, and how it is to work.")
    strategy: Member = Field(default="react", description="The strategy by which it works.")
    model: Model = Field(default=None, description="Its model. Default: the team's.")
    settings: Own = Field(default_factory=dict, description="Further settings of its strategy.")
    tools: SkipJsonSchema[list[Any]] = Field(
        default_factory=list, exclude=True, description="In Python: its tools, if its strategy takes any."
    )

    @model_validator(mode="after")
    def _fit_the_strategy(self) -> Self:
        _check_own(self.strategy, self.settings)
        if self.tools and "tools" not in SETTINGS[self.strategy].model_fields:
            raise ValueError(f"{self.strategy} takes no tools")
        return self


class TeamContext(CooperationContext):
    """Settings of `graphs.team`."""

    shape: Literal["supervisor", "debate"] = Field(
        default="supervisor",
        description="A supervisor delegates, criticises and ends; or all answer, read each other's answers and revise.",
    )
    roles: Annotated[list[Role] | None, BeforeValidator(from_json)] = Field(
        default=None,
        min_length=1,
        max_length=20,
        description='The members: [{"name": ..., "instructions": ..., "strategy": ..., "model": ..., "settings": {}}]. '
        "Default: a researcher, a writer and a critic; in a debate three solvers of different strategies.",
    )
    max_rounds: int = Field(default=4, ge=1, le=100, description="Most rounds of work.")
    judge_model: Model = Field(
        default=None,
        validation_alias=AliasChoices("judge_model", "JUDGE_MODEL"),
        description="Model of the supervisor, or of the judge of a debate. Default: the same as model.",
    )

    @field_validator("roles")
    @classmethod
    def _are_a_team(cls, roles: list[Role] | None, info: ValidationInfo) -> list[Role] | None:
        names = [role.name for role in roles or []]
        if len(set(names)) < len(names):
            raise ValueError("each member needs a name of its own")
        if len(names) == 1 and info.data.get("shape") == "debate":
            raise ValueError("a debate needs at least two solvers")
        return roles


SETTINGS: dict[str, type[Context]] = {
    "react": ReactContext,
    "chain_of_thought": ChainOfThoughtContext,
    "reflection": ReflectionContext,
    "reflexion": ReflexionContext,
    "trials": TrialsContext,
    "lats": LatsContext,
    "tree_of_thoughts": TreeOfThoughtsContext,
    "rap": RapContext,
    "ab_mcts": AbMctsContext,
    "best_of_n": BestOfNContext,
    "plan": PlanContext,
}
"""The settings of each strategy that can be set to work."""


# What workers are sent and send back


class Allowance(TypedDict):
    """What a worker may spend: its share of what the run may still spend."""

    max_model_calls: int
    max_total_tokens: int
    max_seconds: float


class Assignment(TypedDict):
    """What is sent to a worker. `settings` are those that the run was given, for when it is resumed."""

    number: int
    name: str
    task: str
    messages: list[AnyMessage]
    allowance: Allowance
    settings: dict[str, Any]


class Report(TypedDict):
    """What a worker sends back. `answer` is None if it failed; `said` is the id of the answer's message.

    `status` and `reason` are those of the worker's outcome.
    """

    number: int
    name: str
    strategy: str
    task: str
    answer: str | None
    said: str | None
    status: str
    reason: str
    usage: Usage


class CooperationState(RunState):
    """State of strategies that let others work; the reports are gone once the next node has taken them in."""

    reports: Annotated[list[Report], Topic(dict)]


# Plans


class Subgoal(TypedDict):
    """A sub-goal of a run and what came of it.

    `plan` numbers the plan that it is of, and `wave` the wave in which it was worked on, both from 1; `wave` is 0 and
    `usage` None until then. `dropped` is what a later plan has replaced before it was begun. `said` is the id of the
    answer's message.
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
    usage: Usage | None


class PlanState(CooperationState):
    """State of a run; the sub-goals are its artefact."""

    subgoals: list[Subgoal]
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
    rounds: list[Round]


class TeamOutput(Output):
    """What a run returns."""

    rounds: list[Round]
