"""The groups of settings: whole, and in order."""

import pytest

from reflective_agents.state.groups import GROUPS, OWN, RESEARCH, SHARED, grouped
from reflective_agents.state.settings import settings_of, strategy_names

EVERY = [settings_of(name) for name in strategy_names()]


def test_every_name_in_a_group_is_a_setting() -> None:
    fields = {name for schema in EVERY for name in schema.model_fields}
    assert {name for names in SHARED.values() for name in names.split()} <= fields


@pytest.mark.parametrize("strategy", strategy_names())
def test_the_form_has_every_setting_in_the_order_of_the_groups(strategy: str) -> None:
    schema = settings_of(strategy)
    form = schema.model_json_schema()["properties"]
    order = [GROUPS.index(field["group"]) for field in form.values()]
    assert order == sorted(order)
    assert form.keys() == {name for name, field in schema.model_fields.items() if not field.exclude}


def test_what_a_paper_needs_stands_with_research_and_limits_with_limits() -> None:
    groups = grouped(settings_of("lats"))
    assert {"n", "max_depth"} <= groups[OWN].keys()
    assert {"gold_reward", "judge_weight"} <= groups[RESEARCH].keys()
    assert all(name.startswith("max_") or name in ("prices", "call_timeout") for name in groups["Limits"])
