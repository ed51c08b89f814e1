"""The settings of `graphs.reflection`."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import AliasChoices, Field, model_validator

from reflective_agents.state.context import Model
from reflective_agents.state.effect import WITHOUT_OWN_AGENT, InRuns, only_with
from reflective_agents.state.families import AgentContext
from reflective_agents.state.own_tools import CriticTools
from reflective_agents.state.policy import TEXT
from reflective_agents.state.verifier_forms import MOST, Form, Length
from reflective_agents.state.verifiers import VerifiedContext


class ReflectionContext(AgentContext, VerifiedContext):
    """Settings of `graphs.reflection`."""

    renamed: ClassVar[dict[str, str]] = {"checks": "verifiers"}

    does: ClassVar[str] = "Writes a draft, has it criticised, and rewrites it."
    use_when: ClassVar[str] = "the text matters more than the facts, or a person or verifiers should judge it"
    judges: ClassVar[bool] = True

    critic_model: Annotated[Model, only_with("critic", "model")] = Field(
        default=None,
        validation_alias=AliasChoices("critic_model", "CRITIC_MODEL"),
        description="Model of the critic. Default: the same as model.",
    )
    critic: Literal["model", "human", "checks"] = Field(
        default="model",
        description="Who criticises: a model, a person (the run pauses), or only the verifiers.",
    )
    critic_tools: Annotated[CriticTools, only_with("critic", "model")] = Field(
        default=[],
        max_length=MOST,
        description="Tools that the critic may use before it judges: search, calculator; in Python also your own "
        "tools and functions.",
    )
    max_rounds: int = Field(default=3, ge=1, le=100, description="Most drafts written for one request.")
    min_words: int | None = Field(
        default=None, ge=1, le=100_000, description="Verifier: the draft has at least this many words."
    )
    max_words: int | None = Field(
        default=None, ge=1, le=100_000, description="Verifier: the draft has at most this many words."
    )
    generate_prompt: Annotated[
        str | None, TEXT, WITHOUT_OWN_AGENT, InRuns("the agent has a system prompt of its own")
    ] = Field(
        default=None,
        min_length=1,
        description="System prompt of the writer. Default: GENERATE in prompts/reflection.py.",
    )
    reflect_prompt: Annotated[str | None, TEXT, only_with("critic", "model")] = Field(
        default=None,
        min_length=1,
        description="System prompt of the critic. Default: REFLECT in prompts/reflection.py.",
    )

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.min_words and self.max_words and self.min_words > self.max_words:
            raise ValueError(f"no draft has at least {self.min_words} and at most {self.max_words} words")
        return self

    @property
    def is_verified(self) -> bool:
        """Whether anything verifies drafts."""
        return bool(self.verifiers) or self.min_words is not None or self.max_words is not None

    @property
    def forms(self) -> list[Form]:
        """The verifiers: those of the bounds on words first."""
        bounds = {"min_words": self.min_words, "max_words": self.max_words}
        given = {name: words for name, words in bounds.items() if words is not None}
        bounded = [Length.model_validate(given)] if given else []
        return [*bounded, *super().forms]
