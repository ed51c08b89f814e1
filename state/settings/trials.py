"""The settings of `graphs.trials`."""

from typing import Annotated, ClassVar, Literal

from pydantic import AliasChoices, Field

from reflective_agents.state.context import Model
from reflective_agents.state.families import AgentContext
from reflective_agents.state.policy import STRATEGY
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.react import ReactContext


class TrialsContext(AgentContext, ReactContext, ChainOfThoughtContext):
    """Settings of `graphs.trials`."""

    does: ClassVar[str] = "Tries a task several times, and learns from each failure."
    use_when: ClassVar[str] = "success can be told: by tests, by a reward, or by a judge"
    searches: ClassVar[bool] = True

    actor: Annotated[Literal["react", "chain_of_thought"], STRATEGY] = Field(
        default="react", description="The strategy that makes a trial."
    )
    max_trials: int = Field(default=3, ge=1, le=100, description="Most trials of one task.")
    reflection: Literal["none", "last_attempt", "reflexion", "last_attempt_and_reflexion"] = Field(
        default="reflexion", description="What the next trial is told of the earlier ones."
    )
    evaluator: Literal["environment", "exact_match", "judge"] | None = Field(
        default=None,
        description="Who says whether a trial has solved the task: the environment's reward, exact match with the "
        "task's right answer, or a judge that never sees it. Default: the environment if there is one, else the judge.",
    )
    judge_model: Model = Field(
        default=None,
        validation_alias=AliasChoices("judge_model", "JUDGE_MODEL"),
        description="Model of the judge. Default: the same as model.",
    )
    min_score: float = Field(default=0.7, ge=0, le=1, description="Lowest score at which the judge's word counts.")
