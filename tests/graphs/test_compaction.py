"""Conversations that are compacted, as the graph of a strategy shows them to its model."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from reflective_agents.graphs import builder_of
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Request

RECORD = "The record of the beds."
TALK: list[AnyMessage] = [
    message
    for number in range(30)
    for message in (HumanMessage(f"Bed {number} holds roses. " * 20), AIMessage("I see."))
]


class Thread:
    """A thread of `chain_of_thought`."""

    def __init__(self) -> None:
        self.model = FakeChatModel(reply=lambda request: RECORD if _summarises(request) else "An answer.")
        self._graph = builder_of("chain_of_thought").compile(checkpointer=InMemorySaver())
        self._config: Any = {"configurable": {"thread_id": "t"}}

    async def ask(self, *messages: AnyMessage, **settings: Any) -> tuple[Any, list[Request]]:
        """Return the result, and the calls that were made for it."""
        before = len(self.model.calls)
        context: Any = {"model": self.model, **settings}
        result = await self._graph.ainvoke({"messages": list(messages)}, self._config, context=context)
        return result, [*self.model.calls[before:]]

    @property
    def compaction(self) -> Any:
        """What is compacted."""
        return self._graph.get_state(self._config).values.get("compaction")


def _summarises(request: Request) -> bool:
    return "Write the new record" in request.last


def _images(request: Request) -> int:
    return sum("image_url" in str(message.content) for message in request.messages)


@pytest.mark.parametrize("words", ["What rose is this?", "This?", ""])
async def test_images_of_what_is_summarised_are_not_shown(words: str) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    blocks = [{"type": "text", "text": words}] if words else []
    talk = [
        message
        for number in range(20)
        for message in (HumanMessage([*blocks, {**image, "id": str(number)}]), AIMessage("A fine rose. " * 20))
    ]
    result, calls = await Thread().ask(*talk, HumanMessage("And now?"), context_window=16_384)
    assert result["outcome"]["status"] == "answered"
    *summaries, last = calls
    assert [_images(call) for call in summaries] == [0] * len(summaries)
    assert 1 <= str(last.messages).count("image/png") < 5


async def test_a_conversation_that_is_not_to_be_compacted_is_sent_as_it_is() -> None:
    thread = Thread()
    _, calls = await thread.ask(*TALK, HumanMessage("What?"), context_window=4_096)
    assert RECORD in calls[-1].text
    compaction = thread.compaction
    _, [call] = await thread.ask(HumanMessage("And now?"), context_window=16_384, compact="off")
    assert RECORD not in call.text
    assert "Bed 0 holds" in call.text
    assert thread.compaction == compaction


async def test_a_model_that_holds_more_is_shown_more() -> None:
    thread = Thread()
    await thread.ask(*TALK, HumanMessage("What?"), context_window=4_096)
    _, [large] = await thread.ask(HumanMessage("And now?"), context_window=128_000)
    assert "Bed 0 holds" in large.text
    _, [small] = await thread.ask(HumanMessage("And here?"), context_window=4_096)
    assert RECORD in small.text
    assert "Bed 0 holds" not in small.text


async def test_a_question_is_summarised_with_the_work_of_others_on_it() -> None:
    thread = Thread()
    work: list[AnyMessage] = [
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c"}]),
        ToolMessage("Found it. " * 500, tool_call_id="c"),
        AIMessage("Another agent has looked."),
    ]
    question = HumanMessage("My name is Anna. What did they find?")
    _, calls = await thread.ask(*TALK[:20], question, *work, context_window=4_096)
    *summaries, last = calls
    assert "Another agent has looked" not in last.text
    assert any("My name is Anna" in call.text for call in summaries)
    assert last.text.count("My name is Anna") == 1
