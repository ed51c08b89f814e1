"""The settings of `graphs.chain_of_thought`."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from reflective_agents.state.effect import only_with
from reflective_agents.state.families import ActingContext


class ChainOfThoughtContext(ActingContext):
    """Settings of `graphs.chain_of_thought`."""

    does: ClassVar[str] = "Thinks step by step; of several samples the most frequent answer wins."
    use_when: ClassVar[str] = "a question needs reasoning but no search, or as the baseline of all others"
    searches: ClassVar[bool] = False
    asks_in_one_step: ClassVar[bool] = True

    samples: int = Field(default=1, ge=1, le=1000, description="Most answers sampled; the most frequent one wins.")
    confidence: float | None = Field(
        default=None,
        gt=0.5,
        lt=1,
        description="Probability that the leading answer is the model's most frequent one, at which sampling stops. "
        "Default: all samples are drawn.",
    )
    batch: Annotated[int, only_with("confidence")] = Field(
        default=5, ge=1, le=1000, description="Answers sampled at once with confidence; without it, all of them."
    )
    votes: Literal["equal", "likelihood"] = Field(
        default="equal",
        description="How much the vote of a sample counts: the same as any other, or the mean probability of its "
        "tokens, where the provider reports it.",
    )

    @property
    def acts(self) -> bool:
        """Never: it answers at once."""
        return False

    @property
    def tries_several(self) -> bool:
        """Whether it samples more than one answer."""
        return self.samples > 1

    @model_validator(mode="after")
    def _stop_by_equal_votes(self) -> Self:
        if self.confidence is not None and self.votes != "equal":
            raise ValueError("confidence is the chance of a leader by equal votes: give confidence or votes")
        return self
