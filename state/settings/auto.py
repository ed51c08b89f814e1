"""The settings of `graphs.auto`."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from reflective_agents.state.context import Context, Models
from reflective_agents.state.effect import Applies
from reflective_agents.state.families import ChoosingContext, Preset, SourcedContext
from reflective_agents.state.settings.lats import LatsContext

CHEAP: Preset = {
    "lists": 1,
    "grades": "judge",
    "grading": "together",
    "max_lessons": 0,
    "max_rollouts": None,
    "max_expansions": 1000,
}
"""How the tree search works in an environment whatever that presets for LATS: it begins narrow, and widens."""
LISTED = 8
"""Candidates of an expansion that asks for a list: eight cost no call more than five."""


class AutoContext(ChoosingContext, LatsContext, SourcedContext):
    """Settings of `graphs.auto`: its own, and those of its tree search, which is LATS."""

    does: ClassVar[str] = "Begins cheap, and goes up to evidence, tree search and trials as long as it pays."
    use_when: ClassVar[str] = "you want the best answer for your budget without choosing a strategy"

    samples: int = Field(
        default=3, ge=1, le=1000, description="Whole answers sampled at first, if the budget leaves room for more."
    )
    confidence: float = Field(
        default=0.9,
        gt=0.5,
        lt=1,
        description="Probability that the leading answer is the model's most frequent one, at which a vote is safe.",
    )
    call_cost: float = Field(
        default=0.01,
        ge=0,
        le=1,
        description="Cost of a model call, where a right answer is worth 1: a call that is expected to gain less is "
        "not made.",
    )
    ladder: Models = Field(
        default=None,
        min_length=2,
        max_length=10,
        description='Models from cheap to strong, in place of model: ["openai:<model>", "<provider>:<model>"]. The '
        "next takes over where nothing accepts the answers of the one before, or they do not agree. Default: model.",
    )
    selection: Annotated[Literal["uct", "gumbel"], Applies("in lats", lambda _: False)] = Field(
        default="uct", description="For lats only: here the search widens, by UCT."
    )
    max_rounds: int = Field(default=1, ge=0, le=100, description="Most revisions after looking things up; 0 for none.")
    max_trials: int = Field(
        default=3, ge=0, le=100, description="Most reflections on what has failed, each with a new attempt."
    )
    max_expansions: int = Field(default=1000, ge=0, le=10_000, description="Most expansions in one run.")

    @classmethod
    def merged(cls, own: Mapping[str, Any], chosen: Mapping[str, Any]) -> Self:
        """Return the settings of a run as any others; a model that the caller has chosen takes the place of the
        graph's own ladder."""
        replaces = chosen.get("model") is not None and "ladder" not in chosen
        kept = {name: value for name, value in own.items() if name != "ladder" or not replaces}
        return super().merged(kept, chosen)

    @model_validator(mode="after")
    def _begin_cheap(self) -> Self:
        if not self.ladder:
            return self
        # MODEL is for all runs: a ladder takes its place. A model that was given for this run would be ignored.
        if self.model not in (None, Context.ambient().model, self.ladder[0]):
            raise ValueError("model is not asked beside a ladder: leave it out, or name it in the ladder")
        vars(self)["model"] = self.ladder[0]
        return self

    @model_validator(mode="after")
    def _begin_narrow(self) -> Self:
        if self.environment is not None:
            self._preset(CHEAP)
            if self.proposals == "list":
                self._preset({"n": LISTED})
        return self
