"""Replies that are larger than anybody wanted, come in too many pieces, or are no messages at all."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import close_models, get_model, load_client
from reflective_agents.models.reply_size import LONGEST_TOKEN, shortened
from reflective_agents.state.context import Context
from reflective_agents.state.errors import ModelFailed
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.state.tool_calls import MAX_CALLS
from tests.models.test_streams import Ask, Event, Heard, Server, ask, piece, stream, whole

__all__ = ["ask"]
pytestmark = [pytest.mark.hostile, pytest.mark.wire]
TOKENS = 500
Events = Sequence[Event]


@pytest.fixture(scope="module", autouse=True)
def client() -> None:
    """Load the client of OpenAI's protocol before the event loop is watched, and make one."""

    async def make() -> None:
        await load_client("openai:m")
        get_model("openai:m")
        await close_models()

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
        asyncio.run(make())


def meter(**settings: Any) -> Meter:
    return Meter(Context(max_answer_tokens=TOKENS, **settings), NOTHING_SPENT)


def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments}, **more}]}


def fragments(count: int, arguments: str) -> Events:
    first = {"index": 0, "id": "a", "function": {"name": "search", "arguments": ""}}
    return stream([{"tool_calls": [first]}, *(call(0, arguments) for _ in range(count))], "tool_calls")


LARGE: dict[str, Callable[[], Events]] = {
    "a large piece": lambda: stream([{"content": "a" * 300_000}]),
    "a large thought": lambda: stream([{"reasoning_content": "a" * 300_000}, {"content": "Yes."}]),
    "fragments of arguments": lambda: fragments(2_000, "{"),
    "large arguments": lambda: fragments(1, '{"a":' * 100_000),
    "many calls": lambda: stream([call(index, "{}", id=str(index)) for index in range(1_500)], "tool_calls"),
}


@pytest.mark.parametrize("name", LARGE)
async def test_no_more_of_a_stream_is_read_than_it_may_have(ask: Ask, name: str) -> None:
    heard, events = Heard(), LARGE[name]()
    reply = await ask(Server(lambda _: (200, events)), heard, meter())
    assert len(heard.text) <= len(reply.text) <= LONGEST_TOKEN * 2048
    assert len(reply.tool_calls) + len(reply.invalid_tool_calls) <= MAX_CALLS + 1


async def test_what_is_cut_off_says_so(ask: Ask) -> None:
    reply = await ask(Server(lambda _: (200, stream([{"content": "a"}] * 12_000))), Heard(), meter())
    assert reply.response_metadata["finish_reason"] == "length"
    assert 0 < len(reply.text) < 12_000


async def test_arguments_in_pieces_are_joined(ask: Ask) -> None:
    text = json.dumps({"query": "What is LATS?"})
    pieces = [call(0, part) for part in text]
    pieces[0]["tool_calls"][0] |= {"id": "a", "function": {"name": "search", "arguments": text[0]}}
    # Some servers give each of their calls the index 0.
    pieces.append({"tool_calls": [{"index": 0, "id": "b", "function": {"name": "search", "arguments": text}}]})
    reply = await ask(Server(lambda _: (200, stream(pieces, "tool_calls"))), Heard(), meter())
    assert [(each["name"], each["id"], each["args"]) for each in reply.tool_calls] == [
        ("search", id, {"query": "What is LATS?"}) for id in "ab"
    ]


async def test_long_arguments_that_break_off_are_not_completed(ask: Ask) -> None:
    reply = await ask(Server(lambda _: (200, fragments(1, '{"query": "' + "a" * 5_000))), Heard(), meter())
    assert reply.tool_calls == []
    assert [each["name"] for each in reply.invalid_tool_calls] == ["search"]


@pytest.mark.parametrize("role", ["user", "system", "tool"])
async def test_a_stream_is_the_assistants_whatever_role_it_names(ask: Ask, role: str) -> None:
    pieces = [{"role": "assistant", "content": "Because "}, {"role": role, "content": "it is."}]
    assert (await ask(Server(lambda _: (200, stream(pieces))), Heard(), meter())).text == "Because it is."


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("event", ["[" * 200_000, '{"choices": [7]}', "7", "null", "not JSON"], ids=range(5))
async def test_what_is_no_message_ends_with_an_outcome(ask: Ask, event: str) -> None:
    with pytest.raises(ModelFailed):
        await ask(Server(lambda _: (200, [piece({"content": "hel"}), event])), Heard(), meter())


async def test_a_large_reply_is_cut(ask: Ask) -> None:
    calls = [
        {"id": str(index), "type": "function", "function": {"name": "search", "arguments": "{}"}}
        for index in range(1_500)
    ]
    reply = await ask(Server(lambda _: (200, whole({"content": "a" * 300_000, "tool_calls": calls}))), None, meter())
    assert len(reply.text) <= LONGEST_TOKEN * 2048
    assert len(reply.tool_calls) == MAX_CALLS + 1


def test_blocks_are_kept_up_to_the_one_that_is_too_long() -> None:
    blocks: Any = [{"type": "text", "text": "abc"}, {"type": "text", "text": "defghi"}, {"type": "text", "text": "j"}]
    assert shortened(AIMessage(blocks), 5).content == [blocks[0], {"type": "text", "text": "de"}]
    assert shortened(AIMessage(blocks), 10).content == blocks
