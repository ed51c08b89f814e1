"""The settings of `graphs.react`."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from reflective_agents.state.effect import ON_OPEN_QUESTIONS, WITHOUT_OWN_AGENT, Applies
from reflective_agents.state.families import ActingContext, AskingContext, SourcedContext, StepsContext, ToolsContext
from reflective_agents.state.own_tools import Tools


def _calls_tools(settings: Any) -> bool:
    in_steps = settings.acting != "paper" and getattr(settings, "actor", "react") == "react"
    return settings.environment is None or in_steps


_WITH_CLIENT_TOOLS = Applies("with client_tools, without acting=paper", lambda settings: settings.can_demand_calls)
_AS_CALLS = Applies("in an environment where steps are calls: in react, without acting=paper", _calls_tools)


class ReactContext(AskingContext, ToolsContext, ActingContext, StepsContext, SourcedContext):
    """Settings of `graphs.react`."""

    does: ClassVar[str] = "Thinks, acts and observes in turns, with tools or in an environment."
    use_when: ClassVar[str] = "an answer needs several look-ups or calculations, each depending on the last"

    renamed: ClassVar[dict[str, str]] = {"mode": "acting"}
    renamed_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {"mode": {"tools": "auto", "text": "paper"}}

    tools: Annotated[Tools, _AS_CALLS, WITHOUT_OWN_AGENT] = Field(
        default_factory=list,
        exclude=True,
        description="In Python: tools beside the search, or beside the actions of an environment; yours replace "
        "built-in ones of the same name.",
    )
    step_samples: int = Field(
        default=1, ge=1, le=100, description="Next steps sampled at once; the most frequent one is taken."
    )
    parallel_calls: Annotated[bool, _WITH_CLIENT_TOOLS, WITHOUT_OWN_AGENT] = Field(
        default=True, description="Whether a step may call several tools; else the first of its calls is made."
    )
    max_actions: int = Field(default=8, ge=1, le=1000, description="Most actions in one run.")
    calculator: Annotated[bool | None, ON_OPEN_QUESTIONS, WITHOUT_OWN_AGENT] = Field(
        default=None, description="Whether the agent has a calculator. Default: unless it is given tools."
    )
    max_repeats: int = Field(
        default=2,
        ge=1,
        le=1000,
        description="Most steps in a row whose action only brings what it brought before; the model is told.",
    )
    answer_at_limit: bool = Field(
        default=True,
        description="Whether a stopped agent is asked for its best answer; a call and tokens are kept for it.",
    )

    @property
    def can_demand_calls(self) -> bool:
        """Whether its steps are calls of tools, and the caller's are among them."""
        return super().can_demand_calls and self.acting != "paper"

    @property
    def tries_several(self) -> bool:
        """Whether it samples more than one next step."""
        return self.step_samples > 1
