"""Settings in environment variables."""

import copy
import os
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import AliasChoices
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource


class EnvironmentSource(PydanticBaseSettingsSource):
    """The settings in the environment, which are read once while it stays the same: that takes as long as the rest."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of one setting, which pydantic does not ask for."""
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return what the environment says."""
        return copy.deepcopy(_in_environment(self.settings_cls, _environment()))


S = TypeVar("S", bound=BaseSettings)


def ambient_settings(schema: type[S]) -> S:
    """Return the settings where nothing is given, made once while the environment stays the same: that takes as long as
    a step of a graph."""
    settings: S = _ambient(schema, _environment())
    return settings


@lru_cache(maxsize=32)
def _ambient(schema: type[BaseSettings], environment: int) -> Any:
    return schema()


@lru_cache(maxsize=32)
def variables(schema: type[BaseSettings]) -> frozenset[str]:
    """Return the environment variables that hold settings, in lower case."""
    prefix = schema.model_config.get("env_prefix", "")
    names = [prefix + name for name in schema.model_fields]
    for field in schema.model_fields.values():
        if isinstance(field.validation_alias, AliasChoices):
            names += [choice for choice in field.validation_alias.choices if isinstance(choice, str)]
    return frozenset(map(str.lower, names))


@lru_cache(maxsize=32)
def _in_environment(schema: type[BaseSettings], environment: int) -> dict[str, Any]:
    return EnvSettingsSource(schema)()


def _environment() -> int:
    """Return what tells one environment from another: a hash, for it holds keys, which reports of errors would show."""
    return hash(frozenset(os.environ.items()))
