"""Replies that are larger than anybody wanted, come in too many pieces, or are no messages at all."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk

from reflective_agents.models.joining import joined
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import close_models, get_model, load_client
from reflective_agents.models.reply_size import LONGEST_TOKEN, Remaining, shortened
from reflective_agents.models.thoughts import thought_of
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
    "fragments of arguments": lambda: fragments(1_000, "{"),
    "large arguments": lambda: fragments(1, '{"a":' * 100_000),
    "large arguments that are a text": lambda: fragments(1, '"' + "a" * 500_000),
    "many calls": lambda: stream([call(index, "{}", id=str(index)) for index in range(1_500)], "tool_calls"),
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", LARGE)
async def test_no_more_of_a_stream_is_read_than_it_may_have(ask: Ask, name: str) -> None:
    heard, events = Heard(), LARGE[name]()
    reply = await ask(Server(lambda _: (200, events)), heard, meter())
    assert len(heard.text) <= len(reply.text) <= LONGEST_TOKEN * 2048
    assert len(reply.tool_calls) + len(reply.invalid_tool_calls) <= MAX_CALLS + 1


THOUGHTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "beside": lambda: [{"reasoning_content": "a" * 50}] * 3_000,
    "beside, large": lambda: [{"reasoning": "a" * 200_000}] * 3,
    "in tags": lambda: [{"content": "<think>"}, *[{"content": "a"}] * 3_000, {"content": "</think>"}],
    "in tags, large": lambda: [{"content": "<think>"}, *[{"content": "a" * 500_000}] * 4, {"content": "</think>"}],
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", THOUGHTS)
async def test_a_long_thought_leaves_the_answer_its_room(ask: Ask, name: str) -> None:
    events = stream([*THOUGHTS[name](), {"content": "Yes. " * 7_000}])
    reply = await ask(Server(lambda _: (200, events)), Heard(), meter())
    assert (reply.text.strip(), reply.response_metadata["finish_reason"]) == (("Yes. " * 7_000).strip(), "stop")
    assert 3_000 <= len(thought_of(reply)) <= LONGEST_TOKEN * 2048


@pytest.mark.thorough
async def test_what_is_cut_off_says_so(ask: Ask) -> None:
    reply = await ask(Server(lambda _: (200, stream([{"content": "a"}] * 12_000))), Heard(), meter())
    assert reply.response_metadata["finish_reason"] == "length"
    assert 0 < len(reply.text) < 12_000


async def test_pieces_of_calls_of_any_provider_are_joined_in_linear_time() -> None:
    pieces = [AIMessageChunk(content="") for _ in range(2)]
    for each in pieces:  # not validated, which would read them
        each.tool_call_chunks = [tool_call_chunk(name="search", args="{" * 200_000, id="a", index=0)]
    assert len(joined(pieces).invalid_tool_calls) == 1


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
    (invalid,) = reply.invalid_tool_calls
    assert (invalid["name"], (invalid["args"] or "")[:13]) == ("search", '{"query": "aa')


@pytest.mark.parametrize("role", ["user", "system", "tool"])
async def test_a_stream_is_the_assistants_whatever_role_it_names(ask: Ask, role: str) -> None:
    pieces = [{"role": "assistant", "content": "Because "}, {"role": role, "content": "it is."}]
    assert (await ask(Server(lambda _: (200, stream(pieces))), Heard(), meter())).text == "Because it is."


@pytest.mark.matrix(keep=2)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("event", ["[" * 200_000, '{"choices": [7]}', "7", "null", "not JSON"], ids=range(5))
async def test_what_is_no_message_ends_with_an_outcome(ask: Ask, event: str) -> None:
    with pytest.raises(ModelFailed):
        await ask(Server(lambda _: (200, [piece({"content": "hel"}), event])), Heard(), meter())


def test_a_thought_without_end_is_read_no_further() -> None:
    space = Remaining(TOKENS)
    piece = AIMessageChunk(content="", additional_kwargs={"reasoning_content": "a" * 400})
    kept = [len(space.take(piece).additional_kwargs["reasoning_content"]) for _ in range(TOKENS * LONGEST_TOKEN // 6)]
    assert not space.is_used
    space.take(piece)
    assert space.is_used
    assert sum(kept) == TOKENS * LONGEST_TOKEN


def test_a_long_thought_in_two_places_leaves_the_answer_its_room() -> None:
    space, thought = Remaining(TOKENS), "a" * TOKENS * LONGEST_TOKEN
    space.take(
        AIMessageChunk(content=[{"type": "thinking", "thinking": thought}], additional_kwargs={"reasoning": thought})
    )
    assert space.take(AIMessageChunk(content=[{"type": "text", "text": "So."}])).text == "So."


@pytest.mark.parametrize("tag", ["think", ""])
async def test_a_long_thought_of_a_whole_reply_leaves_the_answer_its_room(ask: Ask, tag: str) -> None:
    thought, answer = "a" * 100_000, "Because it is. " * 30
    message = {"content": f"<{tag}>{thought}</{tag}>{answer}"} if tag else {"content": answer, "reasoning": thought}
    reply = await ask(Server(lambda _: (200, whole(message))), None, meter())
    assert reply.text == answer.strip()
    assert 0 < len(thought_of(reply)) <= LONGEST_TOKEN * 2048


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


def test_a_thought_in_blocks_takes_nothing_from_the_text() -> None:
    blocks: Any = [{"type": "thinking", "thinking": "abcdef"}, {"type": "text", "text": "ghij"}]
    assert shortened(AIMessage(blocks), 5).content == [{"type": "thinking", "thinking": "abcde"}, blocks[1]]


async def test_no_more_replies_are_taken_than_were_asked_for(ask: Ask) -> None:
    body = whole({"content": "Yes."})
    reply = await ask(Server(lambda _: (200, {**body, "choices": body["choices"] * 100})), None, meter())
    assert reply.text == "Yes."


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 5, "completion_tokens": float("nan"), "total_tokens": float("inf")},
        {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10, "cost": 1e308},
        {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10, "cost": 10**400},
    ],
    ids=["no number", "dear", "dearer than a float"],
)
async def test_no_usage_puts_a_limit_out_of_force(ask: Ask, usage: dict[str, Any]) -> None:
    spent = meter()
    await ask(Server(lambda _: (200, {**whole({"content": "Yes."}), "usage": usage})), None, spent)
    assert 5 < spent.usage["total_tokens"] < 100
    assert spent.usage["cost"] < 1
