"""Misuse: what cannot be done is refused at once, before any call, in one line that says what to do instead."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from reflective_agents.state.errors import (
    BadCorpus,
    EmptyQuestion,
    MissingKey,
    Misuse,
    SandboxMissing,
    UnknownModel,
    WrongThread,
)
from reflective_agents.state.families import TaskContext
from reflective_agents.state.settings import settings_of
from reflective_agents.testing.fake import FakeChatModel
from tests.strategies import ASK, QUESTION, STRATEGIES, Strategy, every_searching, every_strategy, name_of, ring, thread

pytestmark = pytest.mark.matrix(over="strategy", keep=2)


def misuse(strategy: Strategy, kind: type[Misuse], given: dict[str, Any] = ASK, **settings: Any) -> str:
    """The one line with which a run is refused before any call."""
    model = FakeChatModel(reply=strategy.solving)
    context = strategy.make(**{"model": model, **settings})
    with pytest.raises(kind) as caught:
        strategy.graph.invoke(given, thread(), context=context)
    assert type(caught.value) is kind
    assert model.calls == []
    assert "\n" not in str(caught.value)
    return str(caught.value)


@every_strategy
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [("user", "")],
        [("user", " \n ")],
        [("system", "Be brief.")],
        [HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}])],
    ],
    ids=["none", "empty", "blank", "system only", "picture only"],
)
def test_a_run_without_a_question_is_refused(strategy: Strategy, messages: list[Any]) -> None:
    assert '{"messages": [("user", "your question")]}' in misuse(strategy, EmptyQuestion, {"messages": messages})


@every_strategy
def test_a_question_that_it_has_answered_is_refused(strategy: Strategy) -> None:
    answer = AIMessage("Because.", response_metadata={"strategy": strategy.name})
    misuse(strategy, EmptyQuestion, {"messages": [("user", QUESTION), answer]})


@every_strategy
def test_nothing_new_on_a_thread_is_refused(strategy: Strategy) -> None:
    model = FakeChatModel(reply=strategy.solving)
    graph = strategy.with_memory()
    graph.invoke(ASK, thread(), context=strategy.make(model=model))
    paid = len(model.calls)
    with pytest.raises(EmptyQuestion):
        graph.invoke({"messages": []}, thread(), context=strategy.make(model=model))
    assert len(model.calls) == paid


@every_strategy
def test_a_run_without_messages_is_refused(strategy: Strategy) -> None:
    misuse(strategy, EmptyQuestion, {"question": QUESTION})


MODEL_SETTINGS = [(strategy, name) for strategy in STRATEGIES for name in strategy.models]
every_model_setting = pytest.mark.parametrize(("strategy", "setting"), MODEL_SETTINGS, ids=name_of)


@every_model_setting
def test_an_unknown_model_is_refused(strategy: Strategy, setting: str) -> None:
    for name in ("gpt", "nobody:gpt-9", "openai:", ":"):
        message = misuse(strategy, UnknownModel, ASK, **{setting: name})
        assert repr(name) in message
        assert "offline" in message


@every_model_setting
def test_a_model_whose_key_is_missing_is_refused(strategy: Strategy, setting: str) -> None:
    assert "OPENAI_API_KEY" in misuse(strategy, MissingKey, ASK, **{setting: "openai:gpt-4.1"})


@every_searching
def test_a_corpus_that_is_not_there_is_refused(strategy: Strategy, tmp_path: Any) -> None:
    assert "nowhere" in misuse(strategy, BadCorpus, search="local", corpus=str(tmp_path / "nowhere"))
    misuse(strategy, BadCorpus, search="local", corpus=str(tmp_path))


@every_searching
def test_tavily_without_a_key_is_refused(strategy: Strategy) -> None:
    assert "TAVILY_API_KEY" in misuse(strategy, MissingKey, search="tavily")


every_acting = pytest.mark.parametrize(
    "strategy", [each for each in STRATEGIES if issubclass(settings_of(each.name), TaskContext)], ids=name_of
)


@every_acting
def test_an_environment_without_its_sandbox_is_refused(strategy: Strategy) -> None:
    task = {"id": "1", "question": QUESTION, "data": {"entry_point": "f", "hidden": "assert f(1)", "tests": []}}
    message = misuse(strategy, SandboxMissing, {**ASK, "task": task}, environment="programming")
    assert "bubblewrap" in message
    assert "unsafe_code=True" in message


@pytest.mark.parametrize(
    "strategy",
    [
        each
        for each in STRATEGIES
        if issubclass(settings := settings_of(each.name), TaskContext)
        and not settings(environment="fever").applies_only("docstore")
    ],
    ids=name_of,
)
def test_articles_that_are_not_there_are_refused(strategy: Strategy, tmp_path: Any) -> None:
    misuse(strategy, BadCorpus, environment="fever", docstore=str(tmp_path / "nowhere"))


@every_strategy
def test_prices_that_are_not_there_are_refused(strategy: Strategy, tmp_path: Any) -> None:
    assert "nowhere" in misuse(strategy, Misuse, prices=str(tmp_path / "nowhere"))


@ring(1, 4)
def test_a_thread_of_another_strategy_is_refused(strategy: Strategy, other: Strategy) -> None:
    saver = InMemorySaver()
    other.with_memory(saver).invoke(ASK, thread(), context=other.make(model=FakeChatModel(reply=other.solving)))
    context = strategy.make(model=FakeChatModel(reply=strategy.solving))
    with pytest.raises(WrongThread, match=f"{other.name}, not to {strategy.name}"):
        strategy.with_memory(saver).invoke(ASK, thread(), context=context)


SHARED_BOUNDS = {
    "max_model_calls": 0,
    "max_total_tokens": 0,
    "max_seconds": 0,
    "max_answer_tokens": 0,
    "call_timeout": 0,
    "model": 7,
    "no_such_setting": 1,
}


@every_strategy
def test_impossible_settings_are_refused_by_name(strategy: Strategy) -> None:
    for name, value in {**SHARED_BOUNDS, **strategy.impossible}.items():
        with pytest.raises(ValidationError, match=name):
            strategy.make(**{name: value})
        with pytest.raises(ValidationError, match=name):
            strategy.graph.invoke(ASK, context={**strategy.settings, name: value})


@every_strategy
def test_impossible_settings_of_the_environment_are_refused(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECT_MAX_MODEL_CALLS", "many")
    with pytest.raises(ValidationError, match=r"(?i)max_model_calls"):
        strategy.graph.invoke(ASK)


@every_strategy
def test_every_setting_is_described_for_the_form_of_the_studio(strategy: Strategy) -> None:
    properties = strategy.context.model_json_schema()["properties"]
    assert [name for name, schema in properties.items() if not schema.get("description")] == []
    assert set(strategy.models) <= set(properties)
