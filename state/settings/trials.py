"""The settings of `graphs.trials`."""

from typing import Annotated, ClassVar, Literal

from pydantic import AliasChoices, Field

from reflective_agents.state.context import Context, Model
from reflective_agents.state.effect import Applies, Replication
from reflective_agents.state.families import AgentContext
from reflective_agents.state.policy import STRATEGY
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.react import ReactContext

_JUDGED = Applies("where a judge evaluates", lambda settings: settings.is_judged)


class TrialsContext(AgentContext, ReactContext, ChainOfThoughtContext):
    """Settings of `graphs.trials`."""

    does: ClassVar[str] = "Tries a task several times, and learns from each failure."
    use_when: ClassVar[str] = "success can be recognised: by tests, by a reward, or by a judge"
    searches: ClassVar[bool] = True
    cites: ClassVar[bool] = False

    @property
    def acts(self) -> bool:
        """Whether the actor takes steps."""
        return self.actor == "react"

    @property
    def can_demand_calls(self) -> bool:
        """Whether the actor's steps are calls of tools, and the caller's are among them."""
        return super().can_demand_calls and self.acts

    @property
    def tries_several(self) -> bool:
        """Always: a trial is repeated."""
        return True

    @property
    def shows_lessons(self) -> bool:
        """Always: those of the earlier trials."""
        return True

    @property
    def is_judged(self) -> bool:
        """Whether a judge says if a trial has solved the task."""
        unless_given = self.environment is None and not self.is_verified
        return self.evaluator == "judge" or (self.evaluator is None and unless_given)

    def applies_only(self, name: str) -> str:
        """Return what `Context.applies_only` does, and for what the other actor alone reads, that it does."""
        actors: dict[str, type[Context]] = {"react": ReactContext, "chain_of_thought": ChainOfThoughtContext}
        readers = [actor for actor, schema in actors.items() if name in schema.model_fields]
        if len(readers) == 1 and (self.agent is not None or self.actor not in readers):
            return f"with actor={readers[0]}, and without an agent of your own"
        return super().applies_only(name)

    actor: Annotated[Literal["react", "chain_of_thought"], STRATEGY] = Field(
        default="react", description="The strategy that makes a trial."
    )
    max_trials: int = Field(default=3, ge=1, le=100, description="Most trials of one task.")
    reflection: Annotated[
        Literal["none", "last_attempt", "reflexion", "last_attempt_and_reflexion"], Replication("Reflexion")
    ] = Field(default="reflexion", description="What the next trial is told about the earlier ones.")
    evaluator: Literal["environment", "exact_match", "judge"] | None = Field(
        default=None,
        description="Who says whether a trial has solved the task: the environment's reward, exact match with the "
        "task's right answer, or a judge that never sees it. Default: the environment if there is one, else the "
        "verifiers, else the judge. Verifiers, if there are any, must accept the answer too.",
    )
    judge_model: Annotated[Model, _JUDGED] = Field(
        default=None,
        validation_alias=AliasChoices("judge_model", "JUDGE_MODEL"),
        description="Model of the judge. Default: the same as model.",
    )
    min_score: Annotated[float, _JUDGED] = Field(
        default=0.7, ge=0, le=1, description="Lowest score at which the judge's verdict counts."
    )
