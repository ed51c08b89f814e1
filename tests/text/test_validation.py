"""Validation errors in plain words."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reflective_agents.text.validation import in_plain_words


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: int = Field(ge=1, le=3)
    share: float = Field(default=1, gt=0, allow_inf_nan=False)
    names: list[str] = Field(default=["a"], min_length=1)
    by_name: dict[str, int] = {}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"count": 0}, "must be at least 1"),
        ({"count": 4}, "must be at most 3"),
        ({"count": "many"}, "must be a whole number"),
        ({"count": 1.5}, "must be a whole number"),
        ({}, "is missing"),
        ({"count": 1, "share": 0}, "must be greater than 0"),
        ({"count": 1, "share": float("nan")}, "must be a finite number"),
        ({"count": 1, "names": []}, "must have at least 1 item"),
        ({"count": 1, "names": [3]}, "must be text"),
        ({"count": 1, "by_name": 3}, "must be an object"),
        ({"count": 1, "other": 3}, "is not known"),
    ],
)
def test_every_kind_of_error_has_words(values: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Form.model_validate(values)
    assert [in_plain_words(error["msg"]) for error in raised.value.errors()] == [words]


def test_what_a_check_of_ours_says_stays() -> None:
    assert in_plain_words("Value error, a search is one of local, none") == "a search is one of local, none"
