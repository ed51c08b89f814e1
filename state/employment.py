"""Settings of strategies that let other strategies work: which, and with what settings of their own."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.json_schema import JsonSchemaValue

from reflective_agents.state.context import Context, from_json
from reflective_agents.state.errors import problems_of
from reflective_agents.state.families import AskingContext, SearchContext, SourcedContext
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.settings import employable, settings_of
from reflective_agents.state.verifiers import VerifiedContext

NESTED = {"worker_settings", "roles"}
"""Settings that hold settings."""
StrategySettings = Annotated[JsonObject, BeforeValidator(from_json)]
"""Settings of another strategy by name; also as JSON, which is how the command and the environment give them."""


@dataclass(frozen=True)
class LowerStrategy:
    """Marks a setting that names a strategy of a level below, so that nesting has an end."""

    level: int

    @property
    def choices(self) -> tuple[str, ...]:
        """The names that may be given."""
        return employable(self.level)

    def check(self, name: str) -> str:
        """Return the name if it is one of the choices."""
        if name not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}")
        return name

    def show(self, schema: JsonSchemaValue) -> None:
        """Name the choices in a JSON schema."""
        schema["enum"] = [*self.choices]


@dataclass(frozen=True)
class SettingsOf:
    """Marks a setting that holds settings of the strategy that another field names."""

    field: str

    def read(self, holder: BaseModel, settings: JsonObject) -> Context:
        """Return them as that strategy reads them."""
        return settings_of(getattr(holder, self.field)).model_validate(settings)


def validate_settings(strategy: str, settings: JsonObject) -> None:
    """Check the settings of another strategy.

    Raises:
        ValueError: if it does not take them.
    """
    try:
        settings_of(strategy).model_validate(settings)
    except ValidationError as error:
        raise ValueError(f"{strategy} does not take that: {'; '.join(problems_of(error))}") from error


def with_tools_of_client(strategy: str, settings: JsonMapping, tools: Sequence[JsonObject]) -> JsonObject:
    """Return the settings of a worker, with the tools of a client that it takes over if it takes any."""
    takes_them = bool(tools) and issubclass(settings_of(strategy), AskingContext)
    return {"client_tools": tools, **settings} if takes_them else {**settings}


def can_demand_calls_of(strategy: str, settings: JsonMapping) -> bool:
    """Tell whether each step of a worker can be made a call of the tools that its settings name.

    Of settings that do not go together it cannot: the run, which hands them on, says what is wrong with them.
    """
    schema = settings_of(strategy)
    if not issubclass(schema, AskingContext):
        return False
    try:
        return schema.model_validate(settings).can_demand_calls
    except ValidationError:
        return False


def _plain(value: Any) -> Any:
    """Return a setting as plain data; None if it holds an object, which only Python can give."""
    if isinstance(value, BaseModel):
        # `exclude` marks the fields that hold what only Python can give, such as tools.
        excluded = [name for name, field in type(value).model_fields.items() if field.exclude]
        if any(getattr(value, name) for name in excluded):
            return None
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        return None if None in items else items
    try:
        json.dumps(value)
    except TypeError:
        return None
    return value


class CooperationContext(AskingContext, SearchContext, SourcedContext, VerifiedContext):
    """Settings of strategies that let others work. What all strategies share (model, search, corpus, timeouts) is
    handed on to them."""

    judges: ClassVar[bool] = True  # a worker may

    @property
    def tries_several(self) -> bool:
        """Always: a worker may."""
        return True

    def explicit_settings(self) -> JsonObject:
        """Return what `Context.explicit_settings` does, plus the nested settings that are plain data."""
        settings = super().explicit_settings()
        for name in NESTED & self._explicit_names():
            value = _plain(getattr(self, name))
            if value is not None:
                settings[name] = value
        return settings

    def resumed(self, earlier: JsonObject) -> Self:
        """Resume as `Context.resumed` does, without validating unchanged nested settings again at each node."""
        changed = {**earlier}
        for name in NESTED & earlier.keys():
            if _plain(getattr(self, name)) == earlier[name]:
                del changed[name]
        return super().resumed(changed)
