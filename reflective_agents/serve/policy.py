"""What the operator of a server allows: read from the JSON file that REFLECT_POLICY names.

    {
      "strategies": ["chain_of_thought", "lats"],
      "models": ["openai:gpt-4.1-mini", "ollama:*"],
      "settings": ["model", "max_model_calls", "n"],
      "run": {"max_model_calls": 60, "max_total_tokens": 200000, "max_seconds": 300},
      "day": {"max_model_calls": 2000, "max_total_tokens": 5000000, "max_cost": 3},
      "runs_at_once": 10
    }

What is not mentioned is not restricted. The settings that reach the machine are never a client's: see `state.policy`.
"""

import math
import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reflective_agents.models.account import charge_to
from reflective_agents.serve.days import Days
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, OperatorOnly
from reflective_agents.state.policy import Ambient, serve_others
from reflective_agents.text.structure import Json

VARIABLE = "REFLECT_POLICY"
MODELS = ("model", "judge_model", "critic_model", "arms")
Limit = Literal["max_model_calls", "max_total_tokens", "max_seconds", "max_cost"]
Spendable = Literal["max_model_calls", "max_total_tokens", "max_cost"]
Ceiling = Annotated[float, Field(gt=0)]


class Policy(BaseModel):
    """The operator's rules.

    Attributes:
        strategies: The strategies that clients may run.
        models: The models that they may name; `*` stands for any characters.
        settings: The settings that they may choose.
        run: The highest value of a limit, which is also its default.
        day: The most that one user may spend in a day (UTC), over all runs: calls, tokens, US dollars.
        runs_at_once: The most runs of one user that are under way at a time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategies: frozenset[str] | None = None
    models: tuple[str, ...] | None = None
    settings: frozenset[str] | None = None
    run: Mapping[Limit, Ceiling] = Field(default_factory=dict)
    day: Mapping[Spendable, Ceiling] = Field(default_factory=dict)
    runs_at_once: int | None = Field(default=None, ge=1)

    def offers(self, strategy: str) -> bool:
        """Tell whether clients may run a strategy."""
        return self.strategies is None or strategy in self.strategies

    def check(self, context: BaseModel, ambient: Ambient) -> None:
        """Raise `OperatorOnly` if the settings of a run break a rule; what the operator has set himself does not."""
        own = ambient()
        changed = [name for name in context.model_fields_set if getattr(context, name) != getattr(own, name)]
        for name in changed:
            if self.settings is not None and name not in self.settings:
                raise OperatorOnly(f"{name} cannot be set here; what can be: {', '.join(sorted(self.settings))}")
            if (most := self.run.get(name)) is not None and (getattr(context, name) or math.inf) > most:  # type: ignore[call-overload]
                raise OperatorOnly(f"{name} can be at most {most:g} here")
        if self.models is None:
            return
        for name in {*changed}.intersection(MODELS):
            for model in _names(getattr(context, name)):
                if not any(fnmatchcase(model, pattern) for pattern in self.models):
                    raise OperatorOnly(f"{name}={model} is not offered here; there are {', '.join(self.models)}")

    def enforce(self) -> None:
        """Make the runs of this process obey, however they are started."""
        for name, most in self.run.items():
            given = os.environ.get(variable := f"REFLECT_{name.upper()}")
            default = float(given) if given else Context.model_fields[name].default
            if default is None or default > most:
                os.environ[variable] = f"{most:g}"
        serve_others(self.check)
        charge_to(self.days())

    def days(self) -> Days | None:
        """Return the accounts of the users; None if they may spend what they like."""
        return Days({str(name): most for name, most in self.day.items()}) if self.day else None


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
        raise Misuse(f"{VARIABLE}={path} cannot be read: {error}") from error


def _names(setting: Json) -> Iterator[str]:
    for model in setting if isinstance(setting, list) else [setting]:
        yield str(model)
