"""The oldest turns, summarised within the limits of a run."""

import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from reflective_agents.models.costs import estimate_tokens
from reflective_agents.models.meter import Meter
from reflective_agents.nodes.asking.summary import compact, grouped, pieces, shorten, shortened
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.run import NOTHING_SPENT, Compaction
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Request

LONG: list[AnyMessage] = [
    kind(f"Turn {number}: the budget is {number} euros. " + "So it goes. " * 30, id=f"{number}-{kind.__name__}")
    for number in range(20)
    for kind in (HumanMessage, AIMessage)
]
ASKED = HumanMessage("What is the budget?", id="question")
LEAST = 3_000


async def compacted(model: Any, before: Compaction | None = None, most: int = LEAST, **settings: Any) -> Any:
    context = Context(model=model, **settings)
    events: list[dict[str, Any]] = []
    meter = Meter(context, NOTHING_SPENT, lambda event, **data: events.append({"event": event, **data}))
    state: Any = {"messages": [*LONG, ASKED], **({"compaction": before} if before else {})}
    return await compact(state, context, meter, most), events


async def test_the_oldest_turns_are_summarised_and_the_last_ones_stay() -> None:
    model = FakeChatModel(reply=lambda _: "The budget is 3 euros.")
    compaction, events = await compacted(model)
    assert compaction["summary"] == "The budget is 3 euros."
    kept = LONG[compaction["messages"] :]
    assert kept
    assert kept[0].type == "human"
    assert estimate_tokens(kept, {}) <= LEAST
    assert compaction["until"] == LONG[compaction["messages"] - 1].id
    [event] = [event for event in events if event["event"] == "compacted"]
    assert event["tokens_after"] < event["tokens_before"]
    assert (event["calls"], event["messages"]) == (1, compaction["messages"])
    assert "Turn 0:" in model.calls[0].text
    assert kept[0].text not in model.calls[0].text


async def test_a_summary_is_extended_and_not_made_anew() -> None:
    before = Compaction(until=str(LONG[9].id), messages=10, summary="Before.", sources={})
    model = FakeChatModel(reply=lambda _: "After.")
    compaction, _ = await compacted(model, before)
    assert "Before." in model.calls[0].text
    assert "Turn 0:" not in model.calls[0].text
    assert "Turn 5:" in model.calls[0].text
    assert compaction["messages"] > 10


async def test_a_model_that_fails_is_replaced_by_an_extract() -> None:
    compaction, _ = await compacted(FakeChatModel(reply=lambda _: ValueError("no")), most=600)
    assert "the budget is" in compaction["summary"]


async def test_a_limit_of_the_run_holds() -> None:
    with pytest.raises(LimitReached):
        await compacted(FakeChatModel(reply=lambda _: "So."), max_total_tokens=100)


@pytest.mark.thorough
async def test_of_more_turns_than_the_calls_hold_the_oldest_are_extracted() -> None:
    many = [message.model_copy(update={"id": f"{number}-{message.id}"}) for number in range(60) for message in LONG]
    state: Any = {"messages": [*many, ASKED]}
    model = FakeChatModel(reply=lambda _: "The budget is 3 euros.")
    context = Context(model=model, max_model_calls=20, context_window=4_096, compact_share=0.2)
    compaction = await compact(state, context, Meter(context, NOTHING_SPENT), 1_000)
    assert compaction is not None
    assert compaction["summary"] == "The budget is 3 euros."
    assert 1 <= len(model.calls) <= 4
    assert "budget" in model.calls[0].text.partition("</summary>")[0]


async def test_money_is_shared_too() -> None:
    many = [message.model_copy(update={"id": f"{number}-{message.id}"}) for number in range(20) for message in LONG]
    state: Any = {"messages": [*many, ASKED]}
    model = FakeChatModel(reply=lambda _: "The budget is 3 euros.")
    prices: Any = {"FakeChatModel": {"input": 1.0, "output": 4.0}}
    context = Context(model=model, context_window=4_096, max_cost=0.05, prices=prices)
    meter = Meter(context, NOTHING_SPENT)
    assert await compact(state, context, meter, 1_000)
    assert 0 < meter.usage["cost"] <= 0.2 * 0.05


async def test_each_part_of_a_turn_that_is_cut_is_quoted() -> None:
    state: Any = {"messages": [HumanMessage("Obey me. " * 3_000, id="long"), AIMessage("No.", id="no"), ASKED]}
    model = FakeChatModel(reply=lambda _: "So.")
    context = Context(model=model, context_window=4_096)
    assert await compact(state, context, Meter(context, NOTHING_SPENT), 1_000)
    assert len(model.calls) > 1
    for call in model.calls:
        assert "Obey" not in re.sub(r"<turn .*?</turn>", "", call.last, flags=re.DOTALL)


async def test_what_fits_is_not_compacted() -> None:
    compaction, events = await compacted(FakeChatModel(reply=lambda _: "So."), most=1_000_000)
    assert (compaction, events) == (None, [])


async def test_a_summary_of_as_many_words_as_are_asked_for_stays_whole() -> None:
    def reply(request: Request) -> str:
        return "Bremen, " * int(re.findall(r"at most (\d+) words", request.last)[0])

    compaction, _ = await compacted(FakeChatModel(reply=reply))
    assert " ... " not in compaction["summary"]


async def test_a_summary_that_is_too_long_is_cut() -> None:
    compaction, _ = await compacted(FakeChatModel(reply=lambda _: "word " * 10_000))
    assert len(compaction["summary"].encode()) <= 2 * LEAST


@pytest.mark.parametrize("text", ["a" * 100, "\u4e2d" * 100, "\U0001f642" * 100])
def test_texts_are_cut_by_their_bytes(text: str) -> None:
    assert len(shorten(text, 50).encode()) <= 50 + len(" ... ")
    assert "".join(pieces(text, 20)) == text
    assert all(len(piece.encode()) <= 40 for piece in pieces(text, 20))


def test_the_longest_texts_are_shortened_to_one_length() -> None:
    texts = ["a" * 10, "b" * 1_000, "c" * 2_000]
    short, *others = shortened(texts, 300)
    assert short == texts[0]
    assert [len(other) for other in others] == [300, 300]
    assert shortened(texts, 5_000) == texts


def test_groups_are_no_longer_than_they_may_be() -> None:
    assert list(grouped(["a" * 18] * 5, 20)) == [["a" * 18] * 2, ["a" * 18] * 2, ["a" * 18]]
    assert list(grouped(["a" * 100], 20)) == [["a" * 100]]
