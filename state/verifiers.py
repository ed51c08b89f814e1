"""Verifiers: the settings that say whether an answer is good (docs/verifiers.md)."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from reflective_agents.state.context import Context, from_json
from reflective_agents.state.effect import only_with
from reflective_agents.state.policy import Operator
from reflective_agents.state.verifier_forms import KINDS, MOST, Form, Function, Reward, Rubric

OPERATORS = ("function", "model", "reward", "tests", "command", "key_variable")
"""Keys of verifiers that reach the machine, another one, or a model of their own: only the operator may give them where
others send the requests."""


def read_verifier(value: Any) -> Form:
    """Read a verifier: a function, or data.

    Raises:
        ValueError: if it is none.
    """
    if callable(value):
        return Function.model_validate({"function": value})
    for key in value if isinstance(value, dict) else ():
        if key in KINDS:
            return KINDS[key].model_validate(value)
    raise ValueError("a verifier is a function, or an object with one of " + ", ".join(KINDS))


def _are_verifiers(value: list[Any]) -> list[Any]:
    for verifier in value:
        read_verifier(verifier)
    return value


def _reach_nothing(verifiers: Sequence[Any]) -> bool:
    """Tell whether verifiers are data that reach nothing of this machine, as anybody may give."""
    return all(isinstance(each, dict) and each.keys().isdisjoint(OPERATORS) for each in verifiers)


Verifiers = Annotated[
    list[Any],
    AfterValidator(_are_verifiers),
    BeforeValidator(from_json),
    WithJsonSchema({"type": "array", "items": {"type": "object"}, "default": []}),
    Operator(_reach_nothing),
]


class VerifiedContext(Context):
    """Settings of strategies that answer."""

    verifiers: Verifiers = Field(
        default=[],
        max_length=MOST,
        description='Checks that decide whether an answer is good: [{"pattern": "^[A-Z]"}, {"max_words": 100}, '
        '{"schema": {...}}, {"rubric": ["It names a price."]}]; in Python also functions (request, answer) -> bool, '
        "score or feedback.",
    )
    threshold: Annotated[float, only_with("verifiers")] = Field(
        default=1.0, gt=0, le=1, description="Lowest score at which a verifier accepts an answer."
    )
    verifier_timeout: Annotated[float, only_with("verifiers")] = Field(
        default=60, gt=0, le=3600, description="Longest time that one verifier may take, in seconds."
    )

    @property
    def is_verified(self) -> bool:
        """Whether anything verifies answers."""
        return bool(self.verifiers)

    @property
    def is_decided(self) -> bool:
        """Whether anything of this decides, and does not only rank."""
        return any(form.decides for form in self.forms)

    @property
    def verifying_calls(self) -> int:
        """The most model calls that it takes to verify an answer, without retries."""
        return sum(form.most_calls for form in self.forms if isinstance(form, Rubric))

    @property
    def forms(self) -> list[Form]:
        """The verifiers as they are read."""
        return [read_verifier(verifier) for verifier in self.verifiers]

    @property
    def process_reward(self) -> Reward | None:
        """What scores the steps on the way to an answer; None where nothing of the user's does."""
        rewards = (form for form in self.forms if isinstance(form, Reward) and form.task == "token_classify")
        return next(rewards, None)
