"""The settings of `graphs.react`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from reflective_agents.state.effect import ON_OPEN_QUESTIONS, WITHOUT_OWN_AGENT
from reflective_agents.state.families import ActingContext, AskingContext, SourcedContext, ToolsContext


class ReactContext(AskingContext, ToolsContext, ActingContext, SourcedContext):
    """Settings of `graphs.react`."""

    does: ClassVar[str] = "Thinks, acts and observes in turns, with tools or in an environment."
    use_when: ClassVar[str] = "an answer needs several look-ups or calculations, each depending on the last"

    mode: Literal["tools", "text"] = Field(
        default="tools", description="Native tool calls, or Thought / Action / Observation as text."
    )
    step_samples: int = Field(
        default=1, ge=1, le=100, description="Next steps sampled at once; the one that most of them want is taken."
    )
    max_actions: int = Field(default=8, ge=1, le=1000, description="Most actions in one run.")
    calculator: Annotated[bool | None, ON_OPEN_QUESTIONS, WITHOUT_OWN_AGENT] = Field(
        default=None, description="Whether the agent has a calculator. Default: unless it is given tools."
    )
    max_repeats: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="Most times in a row that the same actions may bring the same.",
    )
    answer_at_limit: bool = Field(
        default=True,
        description="Whether a stopped agent is asked for its best answer; a call and tokens are kept for it.",
    )
