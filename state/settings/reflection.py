"""The settings of `graphs.reflection`."""

from typing import Annotated, ClassVar, Literal

from pydantic import AliasChoices, Field
from pydantic.json_schema import SkipJsonSchema

from reflective_agents.state.context import Check, Model
from reflective_agents.state.effect import WITHOUT_OWN_AGENT, InRuns, only_with
from reflective_agents.state.families import AgentContext
from reflective_agents.state.policy import OBJECT, TEXT


class ReflectionContext(AgentContext):
    """Settings of `graphs.reflection`."""

    does: ClassVar[str] = "Writes a draft, has it criticised, and rewrites it."
    use_when: ClassVar[str] = "the text matters more than the facts, or a person or checks should judge it"

    critic_model: Annotated[Model, only_with("critic", "model")] = Field(
        default=None,
        validation_alias=AliasChoices("critic_model", "CRITIC_MODEL"),
        description="Model of the critic. Default: the same as model.",
    )
    critic: Literal["model", "human", "checks"] = Field(
        default="model",
        description="Who criticises: a model, a person (the run pauses), or only the checks (min_words, max_words).",
    )
    max_rounds: int = Field(default=3, ge=1, le=100, description="Most drafts written for one request.")
    min_words: int | None = Field(
        default=None, ge=1, le=100_000, description="Check: the draft has at least so many words."
    )
    max_words: int | None = Field(
        default=None, ge=1, le=100_000, description="Check: the draft has at most so many words."
    )
    checks: Annotated[SkipJsonSchema[list[Check]], OBJECT] = Field(
        default_factory=list,
        exclude=True,
        description="In Python: functions (request, draft) -> problem, or None if it passes.",
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
