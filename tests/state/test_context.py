"""Settings: what is given holds, the environment fills in the rest, bounds are enforced."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource

from reflective_agents.state.context import Context
from reflective_agents.state.settings.lats import LatsContext
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.testing.fake import FakeChatModel

ALL: tuple[type[Context], ...] = (ReflectionContext, ReflexionContext, LatsContext)


@pytest.mark.parametrize("schema", ALL)
def test_every_setting_is_documented(schema: type[Context]) -> None:
    for name, field in schema.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


@pytest.mark.parametrize("schema", ALL)
def test_numbers_are_bounded(schema: type[Context]) -> None:
    for name, described in schema.model_json_schema()["properties"].items():
        for kind in [described, *described.get("anyOf", [])]:
            if kind.get("type") in ("integer", "number") and name != "seed":
                assert {"minimum", "exclusiveMinimum"} & set(kind), name
                assert "maximum" in kind, name


def test_the_environment_fills_in_what_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "offline")
    monkeypatch.setenv("JUDGE_MODEL", "openai:judge")
    monkeypatch.setenv("REFLECT_N", "7")
    monkeypatch.setenv("REFLECT_GRADING", "")
    context = LatsContext()
    assert (context.model, context.judge_model, context.n, context.grading) == (
        "offline",
        "openai:judge",
        7,
        "together",
    )
    given = LatsContext(model="openai:x", n=2)
    assert (given.model, given.n) == ("openai:x", 2)


def test_the_environment_is_read_once_while_it_stays_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    read = EnvSettingsSource.__call__

    def counting(self: EnvSettingsSource) -> dict[str, Any]:
        nonlocal reads
        reads += 1
        return read(self)

    monkeypatch.setattr(EnvSettingsSource, "__call__", counting)
    monkeypatch.setenv("REFLECT_MODEL_PARAMETERS", '{"top_p": 0.25}')
    contexts = [LatsContext(), LatsContext(n=3)]
    assert reads == 1
    contexts[0].model_parameters["top_p"] = 1  # belongs to these settings alone
    assert contexts[1].model_parameters == LatsContext().model_parameters == {"top_p": 0.25}
    monkeypatch.setenv("REFLECT_N", "4")
    assert (LatsContext().n, reads) == (4, 2)


def test_where_nothing_is_given_the_environment_of_the_moment_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    before = LatsContext.ambient()
    assert LatsContext.ambient() is before
    monkeypatch.setenv("REFLECT_N", "4")
    assert (LatsContext.ambient().n, ReflectionContext.ambient().explicit_settings()) == (4, {})
    monkeypatch.delenv("REFLECT_N")
    assert LatsContext.ambient() == before


def test_no_frame_of_an_error_holds_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    monkeypatch.setenv("REFLECT_N", "many")
    with pytest.raises(ValidationError) as refused:
        LatsContext.ambient()
    ours = [entry for entry in refused.traceback if Path(entry.path).name in ("ambient.py", "base_context.py")]
    assert ours
    assert "sk-planted" not in "".join(repr(entry.locals) for entry in ours)


def test_the_environment_is_checked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECT_N", "many")
    with pytest.raises(ValidationError, match="valid integer"):
        LatsContext()


@pytest.mark.parametrize(
    ("schema", "settings"),
    [
        (LatsContext, {"n": 0}),
        (LatsContext, {"exploration_weight": float("nan")}),
        (LatsContext, {"grading": "sometimes"}),
        (LatsContext, {"max_expansion": 3}),
        (LatsContext, {"min_score": 2}),
        (ReflectionContext, {"max_rounds": 0}),
        (ReflexionContext, {"search": "yahoo"}),
        (Context, {"max_seconds": 0}),
        (Context, {"max_seconds": float("inf")}),
        (Context, {"model": 7}),
    ],
)
def test_what_is_impossible_is_refused(schema: type[Context], settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        schema.model_validate(settings)
    assert str(caught.value.errors()[0]["loc"][0]) in settings


def test_of_a_setting_that_does_not_exist_a_close_one_is_named() -> None:
    with pytest.raises(ValidationError, match=r"modle\n  There is no such setting; did you mean model\?"):
        LatsContext(modle="offline")  # type: ignore[call-arg]
    with pytest.raises(ValidationError, match=r"xyz\n  There is no such setting \["):
        LatsContext.model_validate({"xyz": 1})


def test_a_resumed_run_keeps_its_settings_unless_they_are_given_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL", "offline")
    monkeypatch.setenv("REFLECT_MAX_ROUNDS", "9")
    earlier = ReflectionContext(critic="human", max_rounds=5).explicit_settings()
    assert earlier == {"critic": "human", "max_rounds": 5}
    again = ReflectionContext().resumed(earlier)
    assert (again.critic, again.max_rounds, again.model) == ("human", 5, "offline")
    assert ReflectionContext(critic="model").resumed(earlier).critic == "model"
    assert ReflectionContext(min_words=3).resumed(earlier).min_words == 3


def test_bounds_that_no_draft_fits_are_refused() -> None:
    assert ReflectionContext(min_words=5, max_words=5).max_words == 5
    with pytest.raises(ValidationError, match="at least 50 and at most 5 words"):
        ReflectionContext(min_words=50, max_words=5)


def test_objects_and_functions_are_not_kept() -> None:
    model = FakeChatModel(reply=lambda request: "")
    context = ReflectionContext(model=model, verifiers=[lambda request, draft: None], max_rounds=2)
    assert context.explicit_settings() == {"max_rounds": 2}
    assert context.resumed({"max_rounds": 5}).model is model
