"""What the operator of a server allows: read from the JSON file that REFLECT_POLICY names.

    {
      "strategies": ["chain_of_thought", "lats"],
      "models": ["openai:gpt-4.1-mini", "ollama:*"],
      "settings": ["model", "max_model_calls", "n"],
      "sampling": {"temperature": [0, 1], "top_p": null},
      "run": {"max_model_calls": 60, "max_total_tokens": 200000, "max_seconds": 300},
      "day": {"max_model_calls": 2000, "max_total_tokens": 5000000, "max_cost": 3},
      "runs_at_once": 10
    }

What is not mentioned is not restricted. Clients may never choose settings that reach the machine: see `state.policy`.
"""

import math
import os
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from reflective_agents.models.account import charge_to
from reflective_agents.serve.daily_quota import DailyQuota
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, OperatorOnly, reason_of
from reflective_agents.state.policy import changed, named_in, serve_others
from reflective_agents.state.settings import settings_of, strategy_names

VARIABLE = "REFLECT_POLICY"
Limit = Literal["max_model_calls", "max_total_tokens", "max_seconds", "max_cost"]
Spendable = Literal["max_model_calls", "max_total_tokens", "max_cost"]
Sampling = Literal["temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty"]
Ceiling = Annotated[float, Field(gt=0)]
Bound = Annotated[float, Field(allow_inf_nan=False)]
_AS_SETTINGS: Mapping[Limit, TypeAdapter[float]] = {
    name: TypeAdapter(Annotated[(field := Context.model_fields[name]).annotation, field])  # type: ignore[arg-type]
    for name in get_args(Limit)
}


class Policy(BaseModel):
    """The operator's rules.

    Attributes:
        strategies: The strategies that clients may run.
        models: The models that they may name; `*` stands for any characters.
        settings: The settings that they may choose.
        sampling: The range of parameters of sampling that they may choose; None of those that they may not choose.
        run: The highest value of a limit, which is also its default.
        day: The most that one user may spend in a day (UTC), over all runs: calls, tokens, US dollars.
        runs_at_once: The most runs of one user that are under way at a time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategies: frozenset[str] | None = None
    models: tuple[str, ...] | None = None
    settings: frozenset[str] | None = None
    sampling: Mapping[Sampling, tuple[Bound, Bound] | None] = Field(default_factory=dict)
    run: Mapping[Limit, Ceiling] = Field(default_factory=dict)
    day: Mapping[Spendable, Ceiling] = Field(default_factory=dict)
    runs_at_once: int | None = Field(default=None, ge=1)

    @field_validator("run")
    @classmethod
    def _fit_the_settings(cls, run: Mapping[Limit, float]) -> Mapping[Limit, float]:
        """Refuse a ceiling that is no value of its setting: each run would fail with it."""
        return {name: _AS_SETTINGS[name].validate_python(most) for name, most in run.items()}

    @field_validator("sampling")
    @classmethod
    def _leave_a_range(
        cls, sampling: Mapping[Sampling, tuple[float, float] | None]
    ) -> Mapping[Sampling, tuple[float, float] | None]:
        for name, bounds in sampling.items():
            if bounds and bounds[0] > bounds[1]:
                raise ValueError(f"{name}: the first bound is the lower one; null forbids the parameter")
        return sampling

    def offers(self, strategy: str) -> bool:
        """Tell whether clients may run a strategy."""
        return self.strategies is None or strategy in self.strategies

    def mentions(self, setting: str, parameter: str) -> bool:
        """Tell whether clients may choose a setting, or a parameter of sampling is bounded.

        Args:
            setting: The setting.
            parameter: The parameter that it holds.
        """
        return self.settings is None or setting in self.settings or parameter in self.sampling

    def check(self, context: BaseModel, operators: BaseModel) -> None:
        """Raise `OperatorOnly` if the settings of a run break a rule; the operator's own values never do.

        Settings that a strategy hands on to another one were not chosen by the caller: of those, only models and
        ceilings are checked, and each model of the operator may be used for any setting.

        Args:
            context: The settings.
            operators: The settings by the operator's environment variables.
        """
        handed_on = getattr(context, "is_handed_on", False)
        for name in changed(context, operators):
            if not handed_on:
                parameters = _sampling_in(context, operators, name)
                self._check_name(context, name, parameters)
                self._check_sampling(parameters)
            self._check_ceiling(name, getattr(context, name))
            self._check_models_and_strategies(context, name, _models_of(operators) if handed_on else ())

    def _check_name(self, context: BaseModel, name: str, parameters: Mapping[str, object]) -> None:
        if self.settings is None or not isinstance(context, Context) or name in self.settings:
            return
        if not parameters or parameters.keys() - self.sampling.keys():
            raise OperatorOnly(f"{name} cannot be set here; what can be: {', '.join(sorted(self.settings))}")

    def _check_sampling(self, parameters: Mapping[str, object]) -> None:
        for name, bounds in self.sampling.items():
            if bounds is None and name in parameters:
                raise OperatorOnly(f"{name} cannot be chosen here")
            value = parameters.get(name, bounds and bounds[0])
            if bounds and not (isinstance(value, (int, float)) and bounds[0] <= value <= bounds[1]):
                raise OperatorOnly(f"{name} can be from {plain(bounds[0])} to {plain(bounds[1])} here")

    def _check_ceiling(self, name: str, value: float | None) -> None:
        most = {str(limit): most for limit, most in self.run.items()}.get(name)
        # None is no limit at all.
        if most is not None and (value or math.inf) > most:
            raise OperatorOnly(f"{name} can be at most {plain(most)} here")

    def _check_models_and_strategies(self, context: BaseModel, name: str, trusted: Collection[str]) -> None:
        for model in named_in(context, name, "model"):
            if model not in trusted and not any(fnmatchcase(model, pattern) for pattern in self._patterns):
                raise OperatorOnly(f"{name}={model} is not offered here; there are {', '.join(self._patterns)}")
        for strategy in named_in(context, name, "strategy"):
            if not self.offers(strategy):
                raise OperatorOnly(f"{name}={strategy} is not offered here")

    @property
    def _patterns(self) -> tuple[str, ...]:
        return ("*",) if self.models is None else self.models

    def enforce(self) -> None:
        """Hold all runs of this process to the rules, however they are started."""
        for name, most in self.run.items():
            setting = os.environ.get(variable := f"REFLECT_{name.upper()}")
            defaults = [settings_of(strategy).model_fields[name].default for strategy in strategy_names()]
            # What a run is not given comes from the environment: there the ceiling becomes the default.
            if any(default is None or default > most for default in ([float(setting)] if setting else defaults)):
                os.environ[variable] = plain(most)
        serve_others(self.check)
        charge_to(self.daily_quota())

    def daily_quota(self) -> DailyQuota | None:
        """Return what users may spend in a day; None if that is not limited."""
        return DailyQuota({str(name): most for name, most in self.day.items()}) if self.day else None


@cache
def policy() -> Policy:
    """Return the operator's rules.

    Raises:
        Misuse: if the file cannot be read.
    """
    path = os.environ.get(VARIABLE)
    if not path:
        return Policy()
    try:
        return Policy.model_validate_json(Path(path).read_text())
    except (OSError, ValidationError) as error:
        raise Misuse(f"{VARIABLE}={path} cannot be read: {reason_of(error)}") from error


def _models_of(settings: BaseModel) -> set[str]:
    return {model for name in type(settings).model_fields for model in named_in(settings, name, "model")}


def _sampling_in(context: BaseModel, operators: BaseModel, name: str) -> Mapping[str, object]:
    """Return the parameters of sampling that a setting of the caller's holds, by their names."""
    value = getattr(context, name)
    if name in ("temperature", "judge_temperature"):
        return {"temperature": value}
    if name == "model_parameters":
        own = getattr(operators, name)
        # Those of the environment are sent whatever a caller gives.
        sent_anyway = context.ambient().model_parameters if isinstance(context, Context) else {}
        return {
            each: given
            for each, given in value.items()
            if each not in sent_anyway and (each not in own or given != own[each])
        }
    return {}


def plain(number: float) -> str:
    """Return a number as people and settings write it: 2000000, 0.5."""
    return str(int(number)) if number == int(number) else repr(number)
