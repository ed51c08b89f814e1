"""What an operator allows."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic import ValidationError

from reflective_agents.graphs import graph_of
from reflective_agents.serve.policy import Policy, policy
from reflective_agents.state import policy as checks
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, OperatorOnly
from reflective_agents.state.policy import check_caller
from reflective_agents.state.settings.ab_mcts import AbMctsContext
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.settings.memory import MemoryContext
from reflective_agents.state.settings.plan import PlanContext
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.state.settings.team import TeamContext
from reflective_agents.state.settings.town import TownContext
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.testing.fake import FakeChatModel

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
    RULES.check(context, LatsContext.ambient())


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
        RULES.check(context, context.ambient())


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (MemoryContext(embeddings="openai:text-embedding-3-large"), "embeddings=openai:text-embedding-3-large is not"),
        (TownContext(embeddings="openai:text-embedding-3-large"), "embeddings=openai:text-embedding-3-large is not"),
        (PlanContext(worker="lats"), "worker=lats is not offered"),
        (PlanContext(worker_settings={"model": "openai:gpt-5"}), "model=openai:gpt-5 is not offered"),
        (PlanContext(worker_settings={"max_total_tokens": 2_000_001}), "max_total_tokens can be at most 2000000 here"),
        (PlanContext(worker_settings={"corpus": "/etc"}), "corpus reaches this machine"),
        (TeamContext(roles=[{"name": "a", "instructions": "b", "strategy": "lats"}]), "strategy=lats is not offered"),
        (TeamContext(roles=[{"name": "a", "instructions": "b", "model": "openai:gpt-5"}]), "model=openai:gpt-5 is not"),
        (
            TeamContext(
                roles=[{"name": "a", "instructions": "b", "settings": {"judge_model": "x:y"}, "strategy": "trials"}]
            ),
            "judge_model=x:y is not offered",
        ),
        (TrialsContext(actor="chain_of_thought"), "actor=chain_of_thought is not offered"),
    ],
)
def test_models_and_strategies_are_refused_wherever_they_stand(
    context: Context, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_check", None)
    offered = frozenset({"memory", "plan", "team", "trials", "town"})
    rules = Policy(strategies=offered, models=("offline",), run={"max_total_tokens": 2_000_000})
    checks.serve_others(rules.check)
    with pytest.raises(OperatorOnly, match=reason):
        check_caller(context, context.ambient)


SAMPLED = Policy(settings=frozenset({"temperature"}), sampling={"temperature": (0, 1), "top_p": None, "top_k": (1, 9)})


@pytest.mark.parametrize(
    "context",
    [
        LatsContext(temperature=1),
        LatsContext(model_parameters={"top_k": 9}),
        PlanContext(temperature=0).handed_on(),
        LatsContext(temperature=2).handed_on(),
    ],
)
def test_sampling_within_its_bounds_passes(context: Context) -> None:
    SAMPLED.check(context, context.ambient())


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (LatsContext(temperature=1.5), "temperature can be from 0 to 1 here"),
        (LatsContext(judge_temperature=1.5), "temperature can be from 0 to 1 here"),
        (LatsContext(model_parameters={"top_p": 1}), "top_p cannot be chosen here"),
        (LatsContext(model_parameters={"top_k": 10}), "top_k can be from 1 to 9 here"),
        (LatsContext(model_parameters={"top_k": "9"}), "top_k can be from 1 to 9 here"),
        (LatsContext(model_parameters={"top_k": 9, "min_p": 0}), "model_parameters cannot be set here"),
    ],
)
def test_sampling_beyond_its_bounds_is_refused(context: Context, reason: str) -> None:
    with pytest.raises(OperatorOnly, match=reason):
        SAMPLED.check(context, context.ambient())


@pytest.mark.parametrize(("top_k", "is_allowed"), [(3, True), (5, True), (10, False)])
def test_sampling_is_bounded_too_where_a_graph_has_its_own(top_k: int, is_allowed: bool) -> None:
    context = LatsContext.merged({"model_parameters": {"top_k": 5}}, {"model_parameters": {"top_k": top_k}})
    with nullcontext() if is_allowed else pytest.raises(OperatorOnly):
        SAMPLED.check(context, context.defaults())


def test_on_a_server_the_operators_parameters_hold_beside_a_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    monkeypatch.setenv("REFLECT_MODEL_PARAMETERS", '{"top_p": 0.9, "service_tier": "flex"}')
    context = LatsContext(model_parameters={"top_p": 0.5, "top_k": 3})
    assert context.request_parameters == {"top_p": 0.5, "top_k": 3, "service_tier": "flex"}
    assert context.explicit_settings() == {"model_parameters": {"top_p": 0.5, "top_k": 3}}
    checks.serve_others(Policy().check)
    check_caller(context, LatsContext.ambient)
    assert context.request_parameters == {"top_p": 0.9, "top_k": 3, "service_tier": "flex"}
    with pytest.raises(OperatorOnly, match="model_parameters"):
        check_caller(LatsContext(model_parameters={"service_tier": "default"}), LatsContext.ambient)


def test_a_model_that_is_an_object_is_no_setting_of_anybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    checks.serve_others()
    model = FakeChatModel(reply=lambda _: "Yes.")
    check_caller(AbMctsContext(model=model, arms=[model]), AbMctsContext.ambient)


@pytest.mark.parametrize(
    "verifiers",
    [
        [{"pattern": "^[A-Z]"}],
        [{"max_words": 10}, {"schema": {"type": "object"}}],
        [{"rubric": ["It names a price."]}],
        [{"rubric": ["It names a price."], "tools": ["search", "calculator"]}],
        [{"language": "German"}],
    ],
)
def test_verifiers_that_are_data_are_anybodys(verifiers: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    checks.serve_others()
    check_caller(LatsContext(verifiers=verifiers), LatsContext.ambient)


def accept(request: str, answer: str) -> bool:
    """Accept everything."""
    return True


@pytest.mark.parametrize(
    "verifiers",
    [
        [accept],
        [{"pattern": "x"}, {"function": accept}],
        [{"rubric": ["So."], "model": "openai:gpt-5"}],
        [{"reward": "http://127.0.0.1:8000"}],
        [{"tests": "/etc/passwd", "entry_point": "f"}],
        [{"tests": ["assert f()"], "entry_point": "f"}],
        [{"command": ["/etc/passwd"]}],
    ],
)
def test_other_verifiers_are_the_operators(verifiers: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    checks.serve_others()
    with pytest.raises(OperatorOnly, match="verifiers"):
        check_caller(LatsContext(verifiers=verifiers), LatsContext.ambient)


def search_all(query: str) -> str:
    """Search everything."""
    return query


def test_a_critics_tools_by_name_are_anybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    checks.serve_others()
    check_caller(ReflectionContext(critic_tools=["search", "calculator"]), ReflectionContext.ambient)
    with pytest.raises(OperatorOnly, match="critic_tools"):
        check_caller(ReflectionContext(critic_tools=[search_all]), ReflectionContext.ambient)


@pytest.mark.parametrize("embeddings", ["lexical", "minilm"])
def test_embeddings_that_reach_nothing_are_anybodys(embeddings: str) -> None:
    Policy(models=("offline",)).check(MemoryContext(embeddings=embeddings), MemoryContext.ambient())


@pytest.mark.matrix
@pytest.mark.parametrize("strategy", ["auto", "plan", "team", "trials"])
async def test_what_strategies_give_each_other_is_not_the_callers(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "_check", None)
    monkeypatch.setenv("MODEL", "offline")
    checks.serve_others(Policy(settings=frozenset({"max_model_calls"}), models=("offline",)).check)
    question = {"messages": [("user", "Why is reflection useful in AI?")]}
    out = await graph_of(strategy).ainvoke(question, context={"max_model_calls": 30})
    assert out["outcome"]["status"] != "failed", out["outcome"]
    reports = out.get("subgoals") or [report for round_ in out.get("rounds") or [] for report in round_["reports"]]
    assert not [report["reason"] for report in reports if report["status"] == "failed"]
    with pytest.raises(OperatorOnly, match="max_seconds cannot be set here"):
        await graph_of(strategy).ainvoke(question, context={"max_seconds": 30})


def test_what_is_handed_on_may_take_the_operators_models_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_MODEL", "openai:gpt-5")
    rules = Policy(models=("offline",), settings=frozenset(), run={"max_model_calls": 60})
    rules.check(LatsContext(model="openai:gpt-5", n=3).handed_on(), LatsContext.ambient())
    for settings, reason in (({"model": "openai:o9"}, "model=openai:o9"), ({"max_model_calls": 61}, "at most 60")):
        with pytest.raises(OperatorOnly, match=reason):
            rules.check(LatsContext.model_validate(settings).handed_on(), LatsContext.ambient())


@pytest.mark.parametrize("ceiling", [2_000_000, 1_234_567, 123_456.0, 1_000_000_000])
def test_a_large_ceiling_stays_a_whole_number(ceiling: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    monkeypatch.setenv("REFLECT_MAX_TOTAL_TOKENS", "9000000000")
    Policy(run={"max_total_tokens": ceiling}).enforce()
    assert LatsContext().max_total_tokens == ceiling


@pytest.mark.parametrize("run", [{"max_model_calls": 2.5}, {"max_total_tokens": 2_000_000_000}, {"max_seconds": 0}])
def test_a_ceiling_that_no_run_could_have_is_refused_at_the_start(run: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="run"):
        Policy.model_validate({"run": run})


@pytest.mark.parametrize("bounds", ["[1, 0]", "[0, Infinity]", "[NaN, 1]"])
def test_bounds_that_are_no_range_are_refused_at_the_start(bounds: str) -> None:
    with pytest.raises(ValidationError, match="sampling"):
        Policy.model_validate_json(f'{{"sampling": {{"temperature": {bounds}}}}}')


def test_a_ceiling_holds_for_a_strategy_with_a_higher_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    monkeypatch.setenv("REFLECT_MAX_MODEL_CALLS", "")
    Policy(run={"max_model_calls": 200}).enforce()
    assert (TownContext().max_model_calls, LatsContext().max_model_calls) == (200, 200)


def test_the_operator_is_not_bound_by_his_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "openai:gpt-5")
    monkeypatch.setenv("REFLECT_MAX_EXPANSIONS", "3")
    RULES.check(LatsContext(n=2), LatsContext.ambient())


def test_a_ceiling_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    monkeypatch.setenv("REFLECT_MAX_SECONDS", "10")
    monkeypatch.setenv("REFLECT_MAX_MODEL_CALLS", "")
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
    example = text.partition("## Who may do what")[2].partition("```json\n")[2].partition("```")[0]
    rules = Policy.model_validate_json(example)
    assert rules.runs_at_once == 10


def test_money_has_a_ceiling_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_check", None)
    monkeypatch.setenv("REFLECT_MAX_COST", "")
    rules = Policy(run={"max_cost": 0.5})
    rules.enforce()
    assert LatsContext().max_cost == 0.5
    for cost in (0.6, None):
        context = LatsContext(max_cost=cost)
        with pytest.raises(OperatorOnly, match=r"max_cost can be at most 0\.5 here"):
            rules.check(context, context.ambient())
