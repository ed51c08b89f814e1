"""Fields that are read as they are meant."""

import pytest
from pydantic import BaseModel, ValidationError

from reflective_agents.nodes.delegating.forms import Plan, delegation_of, verdict_of
from reflective_agents.state.schemas import Truth, one_of


class Form(BaseModel):
    """A form."""

    sure: Truth
    who: one_of(("Ada", "bob", 7))  # type: ignore[valid-type]


@pytest.mark.parametrize(
    ("written", "meant"), [("ja", True), ("Yes.", True), ("nein", False), ("是", True), (False, False)]
)
def test_yes_and_no_are_read_in_many_languages(written: object, meant: bool) -> None:
    assert Form.model_validate({"sure": written, "who": "Ada"}).sure is bool(meant)


@pytest.mark.parametrize(("written", "meant"), [("ada", "Ada"), (" BOB ", "bob"), ("7", 7), (7, 7)])
def test_names_are_read_in_whatever_case(written: object, meant: object) -> None:
    assert Form.model_validate({"sure": True, "who": written}).model_dump()["who"] == meant


@pytest.mark.parametrize("written", [{"sure": "perhaps", "who": "Ada"}, {"sure": True, "who": "eve"}])
def test_what_means_nothing_is_refused(written: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Form.model_validate(written)


def test_members_and_reports_are_enums_of_the_form() -> None:
    form = delegation_of(("writer", "critic"), (1, 3))
    schema = form.model_json_schema()
    assert schema["properties"]["best"]["enum"] == [0, 1, 3]
    assert schema["$defs"]["TaskFor"]["properties"]["to"]["enum"] == ["writer", "critic"]
    tasks = [{"to": "Writer", "task": "Write."}]
    made = form.model_validate({"critique": "", "best": "3", "score": 0.5, "done": "nein", "tasks": tasks})
    assert (made.best, made.done, made.tasks[0].to) == (3, False, "writer")
    assert verdict_of((1, 2)).model_json_schema()["properties"]["best"]["enum"] == [1, 2]


def test_needs_are_spelt_like_the_sub_goals_that_they_name() -> None:
    goals = [{"id": "Sea", "goal": "Which?"}, {"id": "2", "goal": "How?", "needs": ["sea", 2]}]
    assert Plan.model_validate({"subgoals": goals}).subgoals[1].needs == ["Sea", "2"]
