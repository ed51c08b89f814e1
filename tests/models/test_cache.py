"""The cache of replies: what was paid for once is not asked again, and samples stay different."""

import itertools
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, PrivateAttr, SecretStr

from reflective_agents.graphs import chain_of_thought
from reflective_agents.models.cache import caching, open_cache, request_key
from reflective_agents.models.providers import get_model
from reflective_agents.testing.fake import FakeChatModel

PROMPT = [HumanMessage("Why?")]


class NamedModel(FakeChatModel):
    """A scripted model that says which it is."""

    name: str = "counting"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"name": self.name}


class PlainModel(BaseChatModel):
    """A model that says of itself what its fields hold, and no more."""

    model: str = "a"
    temperature: float = 0
    api_key: SecretStr = SecretStr("secret")

    @property
    def _llm_type(self) -> str:
        return "plain"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(f"I am {self.model}"))])


class OtherModel(PlainModel):
    """A class with the same fields."""


def counting() -> FakeChatModel:
    numbers = itertools.count(1)
    return NamedModel(reply=lambda request: f"Answer {next(numbers)}")


async def answered(model: BaseChatModel, question: str = "Why?", **settings: float) -> Any:
    context = {"samples": 1, "model": model, **settings}
    graph: Any = chain_of_thought.graph
    return await graph.ainvoke({"messages": [HumanMessage(question)]}, context=context)


async def test_same_requests_are_answered_from_the_file_sample_by_sample(tmp_path: Path) -> None:
    first, second = counting(), counting()
    for model, calls in ((first, 1), (second, 0)):
        with caching(open_cache(tmp_path / "kept" / "replies.sqlite")) as replies:
            states = [await answered(model) for _ in range(3)]
        assert [state["answer"] for state in states] == ["Answer 1", "Answer 2", "Answer 3"]
        assert [state["usage"]["model_calls"] for state in states] == [calls] * 3
        assert replies is not None
        assert (len(model.calls), replies.hits) == (3 * calls, 3 - 3 * calls)


async def test_other_requests_are_asked(tmp_path: Path) -> None:
    model = counting()
    with caching(open_cache(tmp_path / "replies.sqlite")) as replies:
        await answered(model)
        await answered(model, "Who?")
        await answered(model, temperature=0.5)
    assert replies is not None
    assert (len(model.calls), replies.hits) == (3, 0)


async def test_nothing_is_kept_unless_asked_for() -> None:
    model = counting()
    with caching(None) as replies:
        for _ in range(2):
            await answered(model)
    assert (replies, len(model.calls)) == (None, 2)


class PrivateModel(PlainModel):
    """A model that keeps to itself who it is."""

    _persona: Any = PrivateAttr("")


def _persona(persona: Any) -> PrivateModel:
    model = PrivateModel()
    model._persona = persona
    return model


class _Level(Enum):
    LOW = 1
    HIGH = 2


class _Form(BaseModel):
    field: str


class _OtherForm(BaseModel):
    other: str


_OtherForm.__qualname__ = _Form.__qualname__
LOCAL = "http://127.0.0.1:1/v1"
DIFFERENT: dict[str, list[tuple[BaseChatModel, dict[str, Any]]]] = {
    "name": [(PlainModel(), {}), (PlainModel(model="b"), {})],
    "parameter": [(PlainModel(), {}), (PlainModel(temperature=1), {})],
    "class": [(PlainModel(), {}), (OtherModel(), {})],
    "what it says of itself": [(NamedModel(reply=str), {}), (NamedModel(reply=str, name="b"), {})],
    "option": [(PlainModel(), {}), (PlainModel(), {"seed": 0}), (PlainModel(), {"seed": 1})],
    "candidates": [(PlainModel(), {"n": 2}), (PlainModel(), {"n": 3})],
    "tools": [(PlainModel(), {"tools": [{"name": "a"}]}), (PlainModel(), {"tools": [{"name": "b"}]})],
    "schema": [(PlainModel(), {"response_format": _Form}), (PlainModel(), {"response_format": _OtherForm})],
    "kinds of an option": [(PlainModel(), {"level": level}) for level in (*_Level, b"a", b"b", _Form, str)],
    "names of a parameter": [
        (PlainModel(), {"bias": bias}) for bias in ({1: 2, "2": 3}, {"1": 2, "2": 3}, {_Level.LOW: 1})
    ],
    "private attribute": [(_persona(name), {}) for name in "ab"],
    "address": [
        (ChatOpenAI(model="a", api_key=SecretStr("k")), {}),
        (ChatOpenAI(model="a", api_key=SecretStr("k"), base_url=LOCAL), {}),
    ],
}


def test_whatever_may_change_an_answer_is_another_request() -> None:
    for difference in DIFFERENT:
        keys = [request_key(model, PROMPT, options) for model, options in DIFFERENT[difference]]
        assert None not in keys
        assert len(set(keys)) == len(keys)


def test_a_request_is_the_same_whoever_pays_and_however_its_messages_are_numbered() -> None:
    first, second = (PlainModel(api_key=SecretStr(key)) for key in ("one", "another"))
    assert request_key(first, [HumanMessage("Why?", id="1")], {}) == request_key(second, [HumanMessage("Why?")], {})


def test_a_model_of_this_process_has_the_same_key_in_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    keys = [request_key(get_model("openai:a", call_timeout=60), PROMPT, {}) for _ in range(2)]
    assert keys[0] == keys[1] is not None


def test_a_client_that_is_made_later_leaves_the_key_as_it_is() -> None:
    assert request_key(_persona(None), PROMPT, {}) == request_key(_persona(object()), PROMPT, {}) is not None


def test_a_model_with_a_private_function_has_no_key() -> None:
    assert request_key(_persona(lambda: "a"), PROMPT, {}) is None


async def test_what_cannot_be_told_apart_is_not_kept(tmp_path: Path) -> None:
    models = [FakeChatModel(reply=lambda request: "one"), FakeChatModel(reply=lambda request: "two")]
    with caching(open_cache(tmp_path / "replies.sqlite")):
        assert [(await answered(model))["answer"] for model in models] == ["one", "two"]


async def test_no_model_gets_the_answers_of_another(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with caching(open_cache(tmp_path / "replies.sqlite")):
            assert (await answered(PlainModel(model=name)))["answer"] == f"I am {name}"
