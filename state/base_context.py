"""How settings are given: by a caller, by a graph that has its own, or by the environment.

What is not given is read from the environment, typed and checked: `MODEL`, `JUDGE_MODEL`, `CRITIC_MODEL` under these
names, every other setting as `REFLECT_<NAME>`, for example `REFLECT_MAX_MODEL_CALLS=50`. What is given is never
overridden.
"""

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from pydantic import (
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from reflective_agents.state.ambient import EnvironmentSource, ambient_settings, variables
from reflective_agents.state.effect import Applies
from reflective_agents.state.errors import Misuse, WrongThread
from reflective_agents.state.groups import sort_form
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.suggestions import few_unknown, with_suggestions


def _is_plain(value: Any) -> bool:
    if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
        return bool(value) and all(isinstance(item, str) for item in value)
    if not isinstance(value, dict | list):
        return isinstance(value, (str, int, float, bool))
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


class BaseContext(BaseSettings):
    """Settings of a strategy, whatever they are."""

    model_config = SettingsConfigDict(
        env_prefix="REFLECT_",
        env_ignore_empty=True,
        extra="forbid",
        populate_by_name=True,
        defer_build=True,  # of a family of settings only the strategy that runs is needed
        hide_input_in_errors=True,  # it may be a key in the wrong setting, or take a while to print
        json_schema_extra=sort_form,
    )
    does: ClassVar[str]
    """What the strategy does, in a sentence."""
    use_when: ClassVar[str]
    """When to use it, after "use when"."""
    renamed: ClassVar[dict[str, str]] = {}
    """Old names of settings with their new ones. An old name is taken for one release, with a warning."""
    renamed_values: ClassVar[Mapping[str, Mapping[Any, Any]]] = {}
    """What the values of settings with an old name are called now, where that has changed."""

    _handed_on: bool = PrivateAttr(default=False)
    _own: "BaseContext | None" = PrivateAttr(default=None)
    """What holds where nothing is given, if the graph has settings of its own."""

    @model_validator(mode="before")
    @classmethod
    def _take_old_names(cls, values: JsonObject) -> JsonObject:
        taken = dict(values)
        for old, new in cls.renamed.items():
            variable = f"REFLECT_{old.upper()}"
            for name, value in ((old, taken.pop(old, None)), (variable, os.environ.get(variable))):
                if value is not None:
                    warnings.warn(f"{name} is now called {new}: the next release takes no other name", FutureWarning, 4)
                    taken.setdefault(new, cls._in_new_words(old, value))
        return taken

    @classmethod
    def in_new_names(cls, settings: JsonObject) -> JsonObject:
        """Return settings of an earlier release with the names and values of this one."""
        renamed: JsonObject = {}
        for name, value in settings.items():
            renamed[cls.renamed.get(name, name)] = cls._in_new_words(name, value)
        return renamed

    @classmethod
    def _in_new_words(cls, name: str, value: Any) -> Any:
        """Return what the value of a setting with an old name is called now."""
        if not isinstance(value, str):
            return value
        return cls.renamed_values.get(name, {}).get(value, value)

    @model_validator(mode="wrap")
    @classmethod
    def _suggest_names(cls, values: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(values, dict):
            values = few_unknown(values, cls.model_fields)
        try:
            return read(values)
        except ValidationError as error:
            raise with_suggestions(error, cls.model_fields) from None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read settings from the caller, then the environment, and no files: every source costs time in every run."""
        assert isinstance(env_settings, EnvSettingsSource)
        if variables(settings_cls).isdisjoint(env_settings.env_vars):
            return (init_settings,)
        return init_settings, EnvironmentSource(settings_cls)

    @classmethod
    def ambient(cls) -> Self:
        """Return the settings where nothing is given: those from the environment, and the defaults."""
        return ambient_settings(cls)

    @classmethod
    def merged(cls, own: Mapping[str, Any], chosen: Mapping[str, Any]) -> Self:
        """Return the settings of a run of a graph with settings of its `own`; what the caller has `chosen` wins."""
        merged = cls.model_validate({**own, **chosen})
        merged._own = cls.model_validate(dict(own))
        return merged

    def defaults(self) -> "BaseContext":
        """Return what holds where the caller chooses nothing: the graph's own settings, else `ambient`."""
        return self._own or self.ambient()

    def chosen(self) -> dict[str, Any]:
        """Return the settings that the caller gave, objects too: neither defaults nor those from the environment."""
        return {name: getattr(self, name) for name in self._explicit_names()}

    def _explicit_names(self) -> set[str]:
        defaults = self.defaults()
        names = set[str]()
        for name in self.model_fields_set:
            if name not in defaults.model_fields_set or getattr(self, name) != getattr(defaults, name):
                names.add(name)
        return names

    def explicit_settings(self) -> JsonObject:
        """Return the settings that the caller gave, as plain data: neither defaults nor those from the environment.

        Objects and functions, which only Python can give, are left out.
        """
        settings: JsonObject = {}
        for name, value in sorted(self.chosen().items()):
            if _is_plain(value):
                settings[name] = dict(value) if isinstance(value, dict) else value
        return settings

    def check_effect(self, names: Iterable[str] | None = None) -> None:
        """Refuse settings that were given and have no effect beside the others.

        Args:
            names: The settings. Default: those that the caller gave or the graph has of its own, other than as they are
                by default.

        Raises:
            Misuse: if one has none; the text says where it would have one.
        """
        if names is None:
            own = self._own._explicit_names() if self._own else set()
            names = {*self._explicit_names(), *own}
        for name in sorted(names):
            field = type(self).model_fields[name]
            where = self.applies_only(name)
            if where and getattr(self, name) != field.get_default(call_default_factory=True):
                raise Misuse(f"{name} has an effect only {where}: leave it out")

    def applies_only(self, name: str) -> str:
        """Return where a setting has an effect, if it has none beside the others; else an empty text."""
        for mark in type(self).model_fields[name].metadata:
            if isinstance(mark, Applies) and not mark.when(self):
                return mark.where
        return ""

    def resumed(self, earlier: JsonObject) -> Self:
        """Return these settings for a run that is resumed: what was given at its beginning holds unless it is given
        anew, and otherwise than the graph's own settings or the defaults, which some clients send with every request.

        Raises:
            WrongThread: if an earlier release has begun the run with settings that do not exist any more.
        """
        removed = earlier.keys() - type(self).model_fields - self.renamed.keys()
        if removed:
            names = ", ".join(sorted(removed))
            raise WrongThread(
                f"this run was begun with settings that no longer exist ({names}): ask the question again"
            )
        before = self.in_new_names(earlier)
        if all(getattr(self, name) == value for name, value in before.items()):
            return self
        return self._again(self._over(before))

    def _over(self, earlier: JsonObject) -> JsonObject:
        """Return what the caller has chosen now, and beside it what was chosen earlier."""
        return {**earlier, **self.chosen()}

    def _again(self, settings: JsonObject) -> Self:
        own = self._own.chosen() if self._own else {}
        changed = type(self).model_validate({**own, **settings})
        changed._handed_on = self._handed_on
        changed._own = self._own
        return changed

    def _preset(self, values: Mapping[str, object]) -> None:
        """Set what the caller has not given. Not by assignment: pydantic would count it as given."""
        for name, value in values.items():
            if name not in self.model_fields_set:
                vars(self)[name] = value

    def handed_on(self) -> Self:
        """Return these settings as those that a strategy hands on to another one, which no caller has chosen."""
        handed = self.model_copy()
        handed._handed_on = True
        return handed

    @property
    def is_handed_on(self) -> bool:
        """Whether a strategy has made these settings for another one."""
        return self._handed_on
