"""The settings of `graphs.plan`."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from reflective_agents.state.effect import WITHOUT_OWN_AGENT, Applies
from reflective_agents.state.employment import (
    CooperationContext,
    LowerStrategy,
    SettingsOf,
    StrategySettings,
    can_demand_calls_of,
    validate_settings,
    with_tools_of_client,
)
from reflective_agents.state.families import AgentContext
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.own_tools import Tools
from reflective_agents.state.policy import STRATEGY
from reflective_agents.state.settings import settings_of

LEVEL = 1
WORKERS = LowerStrategy(LEVEL)


def _takes_tools(settings: "PlanContext") -> bool:
    return "tools" in settings_of(settings.worker).model_fields


class PlanContext(AgentContext, CooperationContext):
    """Settings of `graphs.plan`."""

    does: ClassVar[str] = "Plans sub-goals, has workers reach them at once, and replans what fails."
    use_when: ClassVar[str] = "a request has several parts, each of which needs work of its own"
    level: ClassVar[int | None] = LEVEL

    worker: Annotated[str, AfterValidator(WORKERS.check), WORKERS, STRATEGY, WITHOUT_OWN_AGENT] = Field(
        default="react", description="The strategy that works on each sub-goal.", json_schema_extra=WORKERS.show
    )
    worker_settings: Annotated[StrategySettings | None, SettingsOf("worker"), WITHOUT_OWN_AGENT] = Field(
        default=None,
        description='Further settings of the worker, such as {"max_actions": 4} or a model of its own.',
    )
    max_subgoals: int = Field(default=5, ge=1, le=50, description="Most sub-goals in one plan.")
    max_replans: int = Field(default=2, ge=0, le=100, description="Most times that a failure leads to another plan.")
    tools: Annotated[Tools, Applies("with a worker that takes tools", _takes_tools), WITHOUT_OWN_AGENT] = Field(
        default_factory=list,
        exclude=True,
        description="In Python: tools of the worker beside the search, if it takes any.",
    )

    @property
    def can_demand_calls(self) -> bool:
        """Whether each step of the worker can be made a call of the caller's tools."""
        settings = {"client_tools": self.client_tools, **(self.worker_settings or {})}
        return can_demand_calls_of(self.worker, settings)

    @field_validator("worker_settings")
    @classmethod
    def _fit_the_worker(cls, settings: JsonObject | None, info: ValidationInfo) -> JsonObject | None:
        # Pydantic leaves out of `data` a worker that was refused.
        if settings and "worker" in info.data:
            worker, tools = info.data["worker"], info.data.get("client_tools", ())
            validate_settings(worker, with_tools_of_client(worker, settings, tools))
        return settings
