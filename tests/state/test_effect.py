"""What the types of settings say of where they have an effect, and of whom they serve."""

import pytest

from reflective_agents.state.effect import replication_settings
from reflective_agents.state.settings import settings_of, strategy_names


@pytest.mark.parametrize("strategy", strategy_names())
def test_settings_of_replications_have_defaults_and_a_paper(strategy: str) -> None:
    fields = settings_of(strategy).model_fields
    assert all(
        paper and not fields[name].is_required() for name, paper in replication_settings(settings_of(strategy)).items()
    )


def test_settings_that_serve_replication_are_marked_in_their_types() -> None:
    assert replication_settings(settings_of("ab_mcts")) == {"prior": "AB-MCTS", "gold_reward": "LATS"}
    assert replication_settings(settings_of("react")) == {}
