"""The settings of `graphs.chain_of_thought`."""

from typing import ClassVar

from pydantic import Field

from reflective_agents.state.families import ActingContext


class ChainOfThoughtContext(ActingContext):
    """Settings of `graphs.chain_of_thought`."""

    does: ClassVar[str] = "Thinks step by step; of several samples the most frequent answer wins."
    use_when: ClassVar[str] = "a question needs reasoning but no search, or as the baseline of all others"

    samples: int = Field(default=1, ge=1, le=1000, description="Most answers sampled; the most frequent one wins.")
    confidence: float | None = Field(
        default=None,
        gt=0.5,
        lt=1,
        description="Chance that the answer that leads is the model's most frequent one, from which on no more are "
        "sampled. Default: all samples are.",
    )
    batch: int = Field(
        default=5, ge=1, le=1000, description="Answers sampled at once under confidence; without it all are."
    )
    seed: int | None = Field(default=None, description="Seed for models that take one.")
