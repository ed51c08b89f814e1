"""What settings name: every one that can hold free text says so in its type, and what does not is the operator's."""

from collections.abc import Iterator
from typing import Annotated, Literal, get_args

import pytest
from pydantic import BaseModel, Field

from reflective_agents.state import policy as checks
from reflective_agents.state.errors import OperatorOnly
from reflective_agents.state.policy import (
    MODEL,
    OPERATOR,
    TEXT,
    check_caller,
    marks_of,
    serve_others,
)
from reflective_agents.state.settings import settings_of, strategy_names

SCHEMAS = [settings_of(name) for name in strategy_names()]


def schemas(schema: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield a schema, and those that settings are given in within it: of the members of a team."""
    yield schema
    for name, marks in marks_of(schema).items():
        for part in models_in(schema.model_fields[name].annotation) if not marks else ():
            yield from schemas(part)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_setting_says_what_it_names(schema: type[BaseModel]) -> None:
    for part in schemas(schema):
        fields = part.model_fields
        unsaid = [n for n, marks in marks_of(part).items() if OPERATOR in marks and OPERATOR not in fields[n].metadata]
        assert not unsaid, f"{part.__name__}: say in the type what {unsaid} name (see state.policy)"


def test_the_walk_finds_what_names_a_model_or_a_strategy() -> None:
    named = {
        (kind, name)
        for schema in SCHEMAS
        for part in schemas(schema)
        for name, marks in marks_of(part).items()
        for kind in (getattr(mark, "kind", None) for mark in marks)
        if kind
    }
    models = {"model", "judge_model", "critic_model", "compact_model", "experience_model", "fallback_models", "arms"}
    models |= {"embeddings", "proposers", "ladder"}
    assert named == {("model", name) for name in models} | {
        ("strategy", name) for name in ("worker", "strategy", "actor")
    }


class New(BaseModel):
    """Settings as somebody may write them tomorrow."""

    fetch_from: str | None = None
    command: list[str] = Field(default=[])
    scorer: Annotated[str | None, MODEL] = None
    tone: Annotated[str, TEXT] = "plain"
    depth: int = 3
    order: Literal["first", "last"] = "first"


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ({"fetch_from": "http://10.0.0.1/"}, True),
        ({"command": ["rm"]}, True),
        ({"tone": "friendly", "depth": 9, "order": "last", "scorer": "offline"}, False),
    ],
)
def test_a_setting_that_does_not_say_what_it_names_is_the_operators(
    given: dict[str, object], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_check", None)
    serve_others()
    if not refused:
        return check_caller(New.model_validate(given), New)
    with pytest.raises(OperatorOnly, match="a request cannot set it"):
        check_caller(New.model_validate(given), New)
