"""What an operator allows."""

from pathlib import Path

import pytest

from reflective_agents.serve.policy import Policy, policy
from reflective_agents.state import policy as checks
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, OperatorOnly
from reflective_agents.state.settings.ab_mcts import AbMctsContext
from reflective_agents.state.settings.lats import LatsContext

RULES = Policy(
    strategies=frozenset({"lats"}),
    models=("openai:gpt-4.1-*", "offline"),
    settings=frozenset({"model", "judge_model", "max_model_calls", "n", "arms"}),
    run={"max_model_calls": 60},
)


@pytest.mark.parametrize(
    "context",
    [
        LatsContext(),
        LatsContext(model="offline", n=3),
        LatsContext(model="openai:gpt-4.1-mini", max_model_calls=60),
    ],
)
def test_what_is_allowed_passes(context: LatsContext) -> None:
    RULES.check(context, LatsContext.ambient)


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (LatsContext(max_expansions=3), "max_expansions cannot be set here"),
        (LatsContext(max_model_calls=61), "max_model_calls can be at most 60 here"),
        (LatsContext(model="openai:gpt-5"), "model=openai:gpt-5 is not offered"),
        (LatsContext(judge_model="openai:gpt-5"), "judge_model=openai:gpt-5 is not offered"),
        (AbMctsContext(arms=["offline", "openai:gpt-5"]), "arms=openai:gpt-5 is not offered"),
    ],
)
def test_what_is_not_allowed_is_refused(context: Context, reason: str) -> None:
    with pytest.raises(OperatorOnly, match=reason):
        RULES.check(context, context.ambient)


def test_the_operator_is_not_bound_by_his_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "openai:gpt-5")
    monkeypatch.setenv("REFLECT_MAX_EXPANSIONS", "3")
    RULES.check(LatsContext(n=2), LatsContext.ambient)


def test_a_ceiling_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    monkeypatch.setenv("REFLECT_MAX_SECONDS", "10")
    monkeypatch.delenv("REFLECT_MAX_MODEL_CALLS", raising=False)
    Policy(run={"max_model_calls": 60, "max_seconds": 300}).enforce()
    assert (LatsContext().max_model_calls, LatsContext().max_seconds) == (60, 10)


def test_the_rules_are_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.json"
    monkeypatch.setenv("REFLECT_POLICY", str(path))
    policy.cache_clear()
    path.write_text('{"strategies": ["lats"], "runs_at_once": 3}')
    assert policy().offers("lats")
    assert not policy().offers("rap")
    policy.cache_clear()
    path.write_text('{"strategy": ["lats"]}')
    with pytest.raises(Misuse, match="strategy"):
        policy()
    policy.cache_clear()


def test_the_documented_rules_are_rules() -> None:
    text = (Path(__file__).parents[2] / "docs/serving.md").read_text()
    rules = Policy.model_validate_json(text.partition("```json\n")[2].partition("```")[0])
    assert rules.runs_at_once == 10


def test_money_has_a_ceiling_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    monkeypatch.delenv("REFLECT_MAX_COST", raising=False)
    rules = Policy(run={"max_cost": 0.5})
    rules.enforce()
    assert LatsContext().max_cost == 0.5
    for asked in (0.6, None):
        context = LatsContext(max_cost=asked)
        with pytest.raises(OperatorOnly, match=r"max_cost can be at most 0\.5 here"):
            rules.check(context, context.ambient)
