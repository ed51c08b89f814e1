"""LangChain's wrappers around models, and the models that are asked where one fails."""

from typing import Any

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_openai import ChatOpenAI
from pydantic import SecretStr, ValidationError
from tenacity import wait_none

from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.graphs.lats import graph as lats
from reflective_agents.graphs.react import graph as react
from reflective_agents.graphs.reflection import graph as reflection
from reflective_agents.models import faults
from reflective_agents.models.capabilities import forget_capabilities
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.reflection import ReflectionContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request

ASK: dict[str, Any] = {"messages": [("user", "6 * 7?")]}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "WAIT", wait_none())
    forget_capabilities()


def down() -> FakeChatModel:
    return FakeChatModel(reply=lambda request: ConnectionRefusedError("down"))


def up() -> FakeChatModel:
    return FakeChatModel(reply=lambda request: "Answer: 42")


async def run(strategy: Any, **context: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    events, result = [], {}
    async for mode, chunk in strategy.astream(ASK, context=context, stream_mode=["custom", "values"]):
        if mode == "custom":
            events.append(chunk)
        else:
            result = chunk
    return result, events


@pytest.mark.parametrize("wrapped", [False, True])
async def test_another_model_answers_where_one_fails(wrapped: bool) -> None:
    first, second = down(), up()
    settings = {"model": first.with_fallbacks([second])} if wrapped else {"model": first, "fallback_models": [second]}
    out, events = await run(graph, **settings, max_model_calls=10)
    assert (out["outcome"]["status"], out["answer"]) == ("answered", "42")
    assert (len(first.calls), len(second.calls)) == (3, 1)
    assert (out["usage"]["model_calls"], out["usage"]["failed_calls"]) == (4, 3)
    [fallback] = [event for event in events if event["event"] == "fallback"]
    assert {fallback["model"], fallback["instead"]} == {"FakeChatModel"}
    assert "down" in fallback["reason"]


async def test_a_model_that_has_failed_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(request: Request) -> Reply:
        return {"complete": False, "critique": "More."} if request.schema else "Answer: 42"

    first, second = down(), FakeChatModel(reply=reply)
    out, _ = await run(reflection, model=first, fallback_models=[second], max_rounds=2)
    assert (len(first.calls), len(second.calls)) == (3, out["usage"]["model_calls"] - 3)
    assert len(second.calls) > 2


async def test_limits_hold_for_all_models_together() -> None:
    first, second = down(), up()
    out, _ = await run(graph, model=first, fallback_models=[second], max_model_calls=3)
    assert (out["outcome"]["status"], out["outcome"]["limit"]["name"]) == ("failed", "max_model_calls")
    assert (len(first.calls), len(second.calls)) == (3, 0)


async def test_the_price_is_that_of_the_model_that_answers() -> None:
    first, second = down(), up()
    prices = {"FakeChatModel": {"input": 0, "output": 1e6}}
    out, _ = await run(graph, model=first, fallback_models=[second], prices=prices)
    assert out["usage"]["cost"] == out["usage"]["output_tokens"]


async def test_where_all_fail_the_last_one_is_named() -> None:
    out, _ = await run(graph, model=down(), fallback_models=[down()])
    assert (out["outcome"]["status"], out["usage"]["failed_calls"]) == ("failed", 6)


async def test_forms_and_tools_go_to_the_fallback_in_its_own_form() -> None:
    def reply(request: Request) -> Reply:
        if request.schema == "Judgements":
            return {"judgements": [{"reasoning": "Good.", "score": 0.9, "solved": True} for _ in range(5)]}
        if request.schema:
            return {"reasoning": "Good.", "score": 0.9, "solved": True}
        return "Final Answer: 42"

    for strategy in (lats, react):
        second = FakeChatModel(reply=reply)
        out, _ = await run(strategy, model=down(), fallback_models=[second], search="none")
        assert out["answer"]
        assert second.calls


def test_retries_of_a_wrapper_are_those_of_the_run() -> None:
    model = down()
    out = graph.invoke(ASK, context={"model": model.with_retry(stop_after_attempt=5), "max_model_calls": 2})
    assert (len(model.calls), out["usage"]["model_calls"]) == (2, 2)


@pytest.mark.wire
def test_a_run_chooses_the_fields_of_a_configurable_model() -> None:
    def reply(request: Request) -> Reply:
        return "Answer: 42"

    with OpenAIServer(reply).threaded() as server:
        options: Any = {"base_url": server.base_url, "api_key": "x", "max_retries": 0}
        late = init_chat_model("openai:a", configurable_fields=("model",), **options)
        early = ChatOpenAI(
            model="a", base_url=server.base_url, api_key=SecretStr("x"), max_retries=0
        ).configurable_fields(model_name=ConfigurableField(id="model"))
        for model in (late, early, early.with_retry()):
            for chosen in ({}, {"model": "openai:b" if model is late else "b"}):
                out = graph.invoke(ASK, {"configurable": chosen}, context={"model": model})
                assert out["answer"] == "42"
                assert out["messages"][-1].response_metadata["model_name"] == ("b" if chosen else "a")
        models = [exchange.body["model"] for exchange in server.requests]
    assert models == ["a", "b"] * 3


@pytest.mark.parametrize(
    ("model", "setting"),
    [
        (up().bind(stop=["x"]), "model_parameters"),
        (up() | RunnableLambda(lambda message: message), "model"),
    ],
)
def test_what_is_more_than_a_model_is_refused_with_the_setting_to_use(model: Any, setting: str) -> None:
    with pytest.raises(ValidationError, match=setting):
        ChainOfThoughtContext(model=model)


def test_a_critic_has_no_fallbacks_of_its_own() -> None:
    with pytest.raises(ValidationError, match="fallback_models"):
        ReflectionContext(critic_model=up().with_fallbacks([up()]))


# Models without a way to be given tools


def test_a_model_that_takes_no_tools_is_shown_them_as_text() -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("6 * 7 is 42.")]))
    out = react.invoke(ASK, context={"model": model, "search": "none"})
    assert (out["outcome"]["status"], out["answer"]) == ("answered", "6 * 7 is 42.")


@pytest.mark.thorough
@pytest.mark.wire
async def test_the_first_event_names_a_model_object() -> None:
    model: BaseChatModel = ChatOpenAI(model="mine", base_url="http://127.0.0.1:9/v1", api_key=SecretStr("x"))
    _, events = await run(graph, model=model)
    assert events[0]["model"] == "mine"
