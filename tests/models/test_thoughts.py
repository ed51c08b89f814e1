"""Thoughts in blocks of content, as the packages of providers bring them: the same whole and in pieces."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from reflective_agents.models.calls import request
from reflective_agents.models.meter import Meter
from reflective_agents.models.thoughts import thought_of
from reflective_agents.state.context import Context
from reflective_agents.state.run import NOTHING_SPENT

Content = list[str | dict[str, Any]]
SUMMARY = {"index": 0, "type": "summary_text"}
FORMS: dict[str, tuple[Content, list[str | Content]]] = {
    "anthropic": (
        [{"type": "thinking", "thinking": "Hm, so.", "signature": "s"}, {"type": "text", "text": "# Paris\nIt is."}],
        [
            [{"type": "thinking", "thinking": "Hm,", "index": 0}],
            [{"type": "thinking", "thinking": " so.", "index": 0}],
            [{"type": "thinking", "signature": "s", "index": 0}],
            [{"type": "text", "text": "# Paris\n", "index": 1}],
            [{"type": "text", "text": "It is.", "index": 1}],
        ],
    ),
    "google": (
        [{"type": "thinking", "thinking": "Hm, so."}, "# Paris\nIt is."],
        [[{"type": "thinking", "thinking": "Hm,"}], [{"type": "thinking", "thinking": " so."}], "# Paris\n", "It is."],
    ),
    "google's own parts": (
        [{"type": "text", "thought": True, "text": "Hm, so."}, {"type": "text", "text": "# Paris\nIt is."}],
        [
            [{"type": "text", "thought": True, "text": "Hm,"}],
            [{"type": "text", "thought": True, "text": " so."}],
            [{"type": "text", "text": "# Paris\n"}],
            [{"type": "text", "text": "It is."}],
        ],
    ),
    "langchain's standard": (
        [{"type": "reasoning", "reasoning": "Hm, so."}, {"type": "text", "text": "# Paris\nIt is."}],
        [
            [{"type": "reasoning", "reasoning": "Hm,", "index": 0}],
            [{"type": "reasoning", "reasoning": " so.", "index": 0}],
            [{"type": "text", "text": "# Paris\n", "index": 1}],
            [{"type": "text", "text": "It is.", "index": 1}],
        ],
    ),
    "openai's responses": (
        [
            {"type": "reasoning", "summary": [{**SUMMARY, "text": "Hm, so."}]},
            {"type": "text", "text": "# Paris\nIt is."},
        ],
        [
            [{"type": "reasoning", "summary": [{**SUMMARY, "text": "Hm,"}], "index": 0}],
            [{"type": "reasoning", "summary": [{**SUMMARY, "text": " so."}], "index": 0}],
            [{"type": "text", "text": "# Paris\n", "index": 1}],
            [{"type": "text", "text": "It is.", "index": 1}],
        ],
    ),
}


class InBlocks(BaseChatModel):
    """A model that replies in blocks."""

    whole: Any
    pieces: Any

    @property
    def _llm_type(self) -> str:
        return "in-blocks"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.whole))])

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for piece in self.pieces:
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


class Heard:
    """A listener that keeps what it hears."""

    is_subscribed = True

    def __init__(self) -> None:
        self.text = ""

    async def on_token(self, text: str) -> None:
        self.text += text

    async def retract(self) -> bool:
        return False


@pytest.mark.parametrize("form", FORMS)
async def test_a_thought_in_blocks_is_told_apart_whole_and_in_pieces(form: str) -> None:
    whole, pieces = FORMS[form]
    for listener in (None, Heard()):
        meter = Meter(Context(), NOTHING_SPENT)
        model = InBlocks(whole=whole, pieces=pieces)
        [reply] = await request(model, [HumanMessage("Where?")], meter, listener=listener)
        assert (reply.text, thought_of(reply)) == ("# Paris\nIt is.", "Hm, so.")
        assert listener is None or listener.text == reply.text
        assert meter.usage["thinking_tokens"] == 2
