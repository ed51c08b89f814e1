"""The settings of `graphs.rap`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from reflective_agents.state.effect import Replication
from reflective_agents.state.families import BranchingContext, Preset, SourcedContext


class RapContext(BranchingContext, SourcedContext):
    """Settings of `graphs.rap`."""

    does: ClassVar[str] = "Plans with the model as its own model of the world, and weighs the answers of all paths."
    use_when: ClassVar[str] = (
        "a question breaks down into smaller ones, or actions must be planned before any is carried out"
    )

    task_presets: ClassVar[Preset] = {"max_depth": 7}

    @property
    def acts(self) -> bool:
        """Never: what an action brings is foreseen."""
        return False

    n: int = Field(default=4, ge=1, le=100, description="Next steps that are considered in each state.")
    max_expansions: int = Field(default=1000, ge=0, le=10_000, description="Most states that are predicted in one run.")
    max_rollouts: int = Field(default=10, ge=1, le=10_000, description="Most rollouts in one run.")
    exploration_weight: float = Field(
        default=1.0, ge=0, le=100, description="w of UCT: 0 only exploits, larger values explore more."
    )
    alpha: Annotated[float, Replication("RAP")] = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Weight of the action's likelihood (r0) in the reward of a step, r0 ** alpha * r1 ** (1 - "
        "alpha); the rest is that of the confidence in the predicted state (r1).",
    )
    action_reward: Annotated[Literal["likelihood", "judge"] | None, Replication("RAP")] = Field(
        default=None,
        description="r0: the likelihood of the action, from log probabilities or else its share of the samples; or "
        "how useful a judge thinks it is. Default: log probabilities where the provider gives them, else the judge.",
    )
    grading: Literal["each", "together"] = Field(
        default="together", description="Judge each action in a call of its own, or all actions in one call."
    )
    confidence_samples: Annotated[int, Replication("RAP")] = Field(
        default=3, ge=1, le=100, description="How often the next state is predicted; r1 is the share that agrees."
    )
    aggregate: Annotated[Literal["mean", "max"], Replication("RAP")] = Field(
        default="max", description="What a step is worth: the mean or the maximum of the paths through it."
    )
    proposals: Literal["samples", "list"] = Field(
        default="list", description="Sample each next step on its own, or ask for a list of different ones in one call."
    )
    min_paths: int = Field(
        default=3, ge=1, le=10_000, description="Fewest paths with an answer whose agreement ends the search."
    )
    min_score: float = Field(
        default=0.7,
        ge=0,
        le=1,
        description="Share of the weight of all paths that one answer needs to end the search.",
    )
