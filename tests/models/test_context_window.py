"""What a prompt takes of a model's context, by what its server reports."""

import asyncio
from typing import Any

import httpx2
import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from reflective_agents.graphs import react
from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import SMALLEST_ASSUMED, capabilities_of
from reflective_agents.models.context_window import longest_prompt, make_way
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.models.meter import Meter
from reflective_agents.state.context import Context
from reflective_agents.state.errors import ConversationTooLong, TooLong
from reflective_agents.state.run import NOTHING_SPENT
from reflective_agents.testing.fake import FakeChatModel

TALK = [HumanMessage("A word or two. " * 200), AIMessage("Yes. " * 600)]


def meter(events: list[dict[str, Any]] | None = None, **settings: Any) -> Meter:
    heard = [] if events is None else events
    return Meter(Context(**settings), NOTHING_SPENT, lambda event, **data: heard.append({"event": event} | data))


def reporting(per_character: float) -> FakeChatModel:
    def reply(request: Any) -> AIMessage:
        tokens = int(len(request.text) * per_character)
        return AIMessage("So.", usage_metadata={"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1})

    return FakeChatModel(reply=reply)


@pytest.mark.parametrize("per_character", [0.2, 0.25, 0.4])
async def test_estimates_follow_what_is_reported(per_character: float) -> None:
    chat = reporting(per_character)
    for _ in range(12):
        await request(chat, TALK, meter())
    assert capabilities_of(chat).tokens_per_estimated == pytest.approx(2 * per_character, rel=0.1)


async def test_a_report_far_below_the_estimate_is_told_once() -> None:
    events: list[dict[str, Any]] = []
    chat, counting = reporting(0.02), meter(events)
    for _ in range(3):
        await request(chat, TALK * 3, counting)
    [event] = [event for event in events if event["event"] == "prompt_cut"]
    assert event["setting"] == "context_window"
    assert capabilities_of(chat).tokens_per_estimated > 0.5  # and nothing is learned of it


async def test_an_answer_has_what_its_prompt_leaves() -> None:
    chat, counting = reporting(0.25).model_copy(update={"max_tokens": 2_048}), meter(context_window=4_096)
    for characters in (100, 4_000, 4_000, 12_000, 13_000):
        await request(chat, [HumanMessage("x" * characters)], counting)
    *short, long, longer = (call.max_tokens or 0 for call in chat.calls)
    assert {*short} == {1_024}
    assert 512 <= longer <= long < 1_024


async def test_what_does_not_fit_is_not_sent() -> None:
    chat = FakeChatModel(reply=lambda _: "So.")
    with pytest.raises(TooLong, match="compact=auto"):
        await request(chat, TALK, meter(context_window=512, compact="off"))
    assert not chat.calls


async def test_a_conversation_that_could_be_shorter_is_named() -> None:
    chat, counting = FakeChatModel(reply=lambda _: "So."), meter(context_window=2_048)
    counting.compactable = TALK
    with pytest.raises(ConversationTooLong) as raised:
        await request(chat, [*TALK, HumanMessage("So?")], counting)
    assert 0 < raised.value.most < 2_048
    assert not chat.calls


def test_the_setting_and_what_is_known_are_both_held() -> None:
    chat = FakeChatModel(reply=lambda _: "So.")
    assert longest_prompt(chat, meter()) is None
    assert longest_prompt(chat, meter(context_window=4_096)) == 3_072
    capabilities_of(chat).context_tokens = 1_024
    assert longest_prompt(chat, meter(context_window=4_096)) == 768


async def test_a_refusal_halves_a_conversation_that_seemed_to_fit() -> None:
    def refuse(_: Any) -> Exception:
        return openai_refusal("The maximum context length is 9000 tokens.")

    chat, counting = FakeChatModel(reply=refuse), meter()
    counting.compactable = TALK
    with pytest.raises(ConversationTooLong) as raised:
        await request(chat, [*TALK, HumanMessage("So?")], counting)
    assert raised.value.most == estimate_tokens(TALK, {}) // 2
    counting.compactable = ()
    with pytest.raises(TooLong, match="max_answer_tokens"):
        await request(chat, [*TALK, HumanMessage("So?")], counting)


async def test_a_refusal_without_a_number_assumes_a_size_that_later_reports_correct() -> None:
    events: list[dict[str, Any]] = []
    long = HumanMessage("A word or two. " * 4_000)

    def reply(request: Any) -> Any:
        tokens = len(request.text) // 4
        if tokens > 9_000:
            return openai_refusal("context_length_exceeded")
        return AIMessage("So.", usage_metadata={"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1})

    chat, counting = FakeChatModel(reply=reply), meter(events)
    for _ in range(2):
        with pytest.raises(TooLong):
            await request(chat, [long], counting)
    sizes = [event["context_tokens"] for event in events if event.get("assumed")]
    assert sizes == sorted(sizes, reverse=True)
    assert SMALLEST_ASSUMED <= sizes[-1] < 20_000
    capabilities_of(chat).context_tokens = SMALLEST_ASSUMED
    await request(chat, [HumanMessage("A word or two. " * 1_000)], counting)
    assert capabilities_of(chat).context_tokens == 15_000 // 4


async def test_requests_that_are_refused_at_once_teach_as_much_as_one() -> None:
    chat, counting = FakeChatModel(reply=lambda _: openai_refusal("context length exceeded"), latency=0.01), meter()
    long = HumanMessage("A word or two. " * 4_000)
    await asyncio.gather(*(request(chat, [long], counting) for _ in range(8)), return_exceptions=True)
    assert (capabilities_of(chat).context_tokens or 0) > 12_000


def openai_refusal(text: str) -> openai.BadRequestError:
    request = httpx2.Request("POST", "http://test")
    return openai.BadRequestError(text, response=httpx2.Response(400, request=request), body=None)


def test_a_conversation_always_has_its_tenth() -> None:
    counting = meter()
    counting.compactable = [HumanMessage("So. " * 40)]
    make_way([HumanMessage("A long step. " * 400)], 1_500, counting)  # and nothing is raised
    counting.compactable = TALK
    with pytest.raises(ConversationTooLong) as raised:
        make_way([HumanMessage("A long step. " * 400), *TALK], 1_500, counting)
    assert raised.value.most == 150


@pytest.mark.parametrize("longest", [-500, 0, 1_500])
def test_a_conversation_that_cannot_help_is_not_compacted(longest: int) -> None:
    """A node would compact it again and again: nothing is left of it, or nothing may be spent any more."""
    counting = meter()
    counting.compactable = TALK if longest <= 0 else ()
    make_way([HumanMessage("A long step. " * 800)], longest, counting)  # and nothing is raised
    counting.compactable = ()
    make_way([HumanMessage("A long step. " * 800)], longest, counting)


@pytest.mark.timeout(60)
async def test_a_run_that_cannot_afford_a_step_ends() -> None:
    given: Any = {"model": FakeChatModel(reply=lambda _: "So."), "search": "none", "max_total_tokens": 500}
    out = await react.graph.ainvoke({"messages": [HumanMessage("So?")]}, context=given)
    assert (out["outcome"]["status"], out["outcome"]["limit"]["name"]) == ("failed", "max_total_tokens")
