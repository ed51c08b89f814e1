"""Images in a question: shown with it in every strategy, or refused in a sentence; never dropped."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from reflective_agents.graphs.react import graph as react
from reflective_agents.models.providers import close_models
from reflective_agents.state.errors import Misuse
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Request
from tests.strategies import QUESTION, Strategy, every_strategy

PIXEL = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": PIXEL}}
BASE64: dict[str, Any] = {"type": "image", "base64": PIXEL.partition(",")[2], "mime_type": "image/png"}


def ask(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [HumanMessage([{"type": "text", "text": QUESTION}, *blocks])]}


def images(request: Request) -> int:
    return sum(block == IMAGE for message in request.messages for block in message.content)


@every_strategy
async def test_every_prompt_that_shows_the_question_shows_its_image_once(strategy: Strategy) -> None:
    model = FakeChatModel(reply=strategy.solving)
    result = await strategy.graph.ainvoke(ask(IMAGE), context=strategy.make(model=model))
    assert result["outcome"]["status"] == strategy.status
    with_question = [request for request in model.calls if QUESTION in request.text]
    assert len(with_question) >= min(strategy.calls, 2)
    assert {images(request) for request in with_question} == {1}


@pytest.mark.wire
@every_strategy
async def test_images_are_on_the_wire(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    async with OpenAIServer(strategy.solving) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        await strategy.graph.ainvoke(ask(BASE64), context=strategy.make(model="openai:test"))
        await close_models()
    bodies = [str(exchange.body["messages"]) for exchange in server.requests]
    assert any(QUESTION in body for body in bodies)
    assert {body.count(PIXEL) for body in bodies if QUESTION in body} == {1}


async def test_an_image_of_an_earlier_question_stays_with_it() -> None:
    model = FakeChatModel(reply=lambda _: "Red.")
    conversation = [*ask(IMAGE)["messages"], AIMessage("It helps."), HumanMessage("Which colour has it?")]
    await react.ainvoke({"messages": conversation}, context=ReactContext(model=model, search="none"))
    assert [images(request) for request in model.calls] == [1]


@every_strategy
async def test_a_model_without_images_is_refused_with_a_sentence(strategy: Strategy) -> None:
    with pytest.raises(Misuse, match="offline takes no images: choose a model that does"):
        await strategy.graph.ainvoke(ask(IMAGE), context=strategy.make(model="offline"))


async def test_what_is_neither_text_nor_image_is_refused_by_name() -> None:
    model = FakeChatModel(reply=lambda _: "Red.")
    with pytest.raises(Misuse, match="this one holds file: leave that out"):
        await react.ainvoke(ask({"type": "file", "base64": "", "mime_type": "a/b"}), context=ReactContext(model=model))


async def test_an_environment_takes_no_images() -> None:
    model = FakeChatModel(reply=lambda _: "Red.")
    with pytest.raises(Misuse, match="without an environment"):
        await react.ainvoke(ask(IMAGE), context=ReactContext(model=model, environment="arithmetic"))
    assert model.calls == []


async def test_a_refusal_of_images_is_told_and_remembered() -> None:
    refusal = ValueError("HTTP 400: this model does not support image input")
    model = FakeChatModel(reply=lambda _: refusal)
    result = await react.ainvoke(ask(IMAGE), context=ReactContext(model=model, search="none"))
    assert result["outcome"]["status"] == "failed"
    assert "images" in result["outcome"]["reason"]
    with pytest.raises(Misuse, match="takes no images"):
        await react.ainvoke(ask(IMAGE), context=ReactContext(model=model, search="none"))
