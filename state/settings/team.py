"""The settings of `graphs.team`."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from reflective_agents.state.context import Model, from_json
from reflective_agents.state.employment import (
    CooperationContext,
    LowerStrategy,
    SettingsOf,
    StrategySettings,
    can_demand_calls_of,
    validate_settings,
    with_tools_of_client,
)
from reflective_agents.state.own_tools import Tools
from reflective_agents.state.policy import STRATEGY, TEXT
from reflective_agents.state.settings import settings_of

LEVEL = 2
MEMBERS = LowerStrategy(LEVEL)


class Role(BaseModel):
    """A member of a team: who it is, what it is there for, and how it works."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, TEXT] = Field(pattern=r"^[\w-]{1,40}$", description="Its name: letters, digits, - and _.")
    instructions: Annotated[str, TEXT] = Field(min_length=1, description="What it is there for, and how it is to work.")
    strategy: Annotated[str, AfterValidator(MEMBERS.check), STRATEGY] = Field(
        default="react", description="The strategy by which it works.", json_schema_extra=MEMBERS.show
    )
    model: Model = Field(default=None, description="Its model. Default: the team's.")
    settings: Annotated[StrategySettings, SettingsOf("strategy")] = Field(
        default_factory=dict, description="Further settings of its strategy."
    )
    tools: Tools = Field(
        default_factory=list, exclude=True, description="In Python: its tools, if its strategy takes any."
    )

    @model_validator(mode="after")
    def _fit_the_strategy(self) -> Self:
        validate_settings(self.strategy, self.settings)
        if self.tools and "tools" not in settings_of(self.strategy).model_fields:
            raise ValueError(f"{self.strategy} takes no tools")
        return self


class TeamContext(CooperationContext):
    """Settings of `graphs.team`."""

    does: ClassVar[str] = "Lets a supervisor lead members with roles, or solvers debate."
    use_when: ClassVar[str] = "a request needs several kinds of work, or a second opinion"
    level: ClassVar[int | None] = LEVEL

    shape: Literal["supervisor", "debate"] = Field(
        default="supervisor",
        description="A supervisor delegates, criticises and ends; or all answer, read each other's answers and revise.",
    )
    roles: Annotated[list[Role] | None, BeforeValidator(from_json)] = Field(
        default=None,
        min_length=1,
        max_length=20,
        description='The members: [{"name": ..., "instructions": ..., "strategy": ..., "model": ..., "settings": {}}]. '
        "Default: a researcher, a writer and a critic; in a debate three solvers of different strategies.",
    )
    max_rounds: int = Field(default=4, ge=1, le=100, description="Most rounds of work.")
    judge_model: Model = Field(
        default=None,
        validation_alias=AliasChoices("judge_model", "JUDGE_MODEL"),
        description="Model of the supervisor, or of the judge of a debate. Default: the same as model.",
    )

    @property
    def can_demand_calls(self) -> bool:
        """Whether each step of every member can be made a call of the caller's tools; in a default team not all act."""
        if self.roles is None:
            return False
        tools = {"client_tools": self.client_tools}
        return all(can_demand_calls_of(role.strategy, {**tools, **role.settings}) for role in self.roles)

    @field_validator("roles")
    @classmethod
    def _are_a_team(cls, roles: list[Role] | None, info: ValidationInfo) -> list[Role] | None:
        names = [role.name for role in roles or []]
        if len(set(names)) < len(names):
            raise ValueError("each member needs a name of its own")
        if len(names) == 1 and info.data.get("shape") == "debate":
            raise ValueError("a debate needs at least two solvers")
        if tools := info.data.get("client_tools"):
            for role in roles or []:
                validate_settings(role.strategy, with_tools_of_client(role.strategy, role.settings, tools))
        return roles
