"""What the agent keeps of conversations, and how it stands in the requests: facts, changes, and everything once."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from reflective_agents.graphs import memory as graph_module
from reflective_agents.graphs._memory import keeping, recall
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.state.memories import Memory, new_memory
from reflective_agents.testing.script import Reply, Request
from tests.graphs.test_memory import Talk

MAY, JULY, AUGUST = (datetime(2026, month, 3, 12, tzinfo=UTC).timestamp() for month in (5, 7, 8))
FACT = {"about": "the user", "since": "", "importance": 6, "supersedes": []}
WARD = "I work in a paediatric ward."
QUIT = "I quit, and work nowhere now."
WHERE = "Where do I work?"


class Clock:
    """The time of the agent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = MAY
        for module in (keeping, recall, graph_module):
            monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: self.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def numbers(request: Request, text: str) -> list[int]:
    """Under which number a request shows a memory that holds this text."""
    return [int(number) for number, body in MEMORY.findall(request.last) if text in body]


MEMORY = re.compile(r'<memory number="(\d+)"[^>]*>\n(.*?)\n</memory>', re.S)


def keeper(request: Request) -> Reply:
    """A model that keeps what a careful reader would, and says which fact another one ends."""
    if request.schema == "Facts":
        if WARD in request.last:
            return {"facts": [{**FACT, "statement": "The user works in a paediatric ward.", "since": "May 2026"}]}
        if QUIT in request.last:
            ended = numbers(request, "paediatric ward")
            return {
                "facts": [{**FACT, "statement": "The user has quit and works nowhere.", "supersedes": [*ended, 99]}]
            }
        return {"facts": []}
    if request.schema == "Questions":
        return {"questions": ["What does the user do?"]}
    if request.schema == "Insights":
        ground = numbers(request, WARD) or [1]
        return {"insights": [{"insight": "The user cares for sick children.", "evidence": ground, "importance": 7}]}
    return "I see."


def shown(request: Request) -> str:
    """The memories that an answer was given."""
    return "\n".join(message.text for message in request.messages if "<memory " in message.text)


async def test_what_holds_now_and_what_did_is_shown_with_its_dates(clock: Clock) -> None:
    talk = Talk(keeper)
    await talk.say(WARD)
    clock.now = JULY
    await talk.say(QUIT)
    clock.now = AUGUST
    out = await talk.say(WHERE)
    facts = {memory["text"]: memory for memory in out["memories"] if memory["kind"] == "fact"}
    ward, left = facts["The user works in a paediatric ward."], facts["The user has quit and works nowhere."]
    assert (ward["since"], ward["until"]) == ("May 2026", pytest.approx(JULY, abs=1))
    assert left["until"] is None
    prompt = shown(talk.answered()[-1])
    assert re.search(
        r'kind="fact" of="2026-05-03 12:00 UTC" since="May 2026" superseded="2026-07-03 12:00 UTC"', prompt
    )
    assert re.search(r'kind="fact" of="2026-07-03 12:00 UTC">\nThe user has quit', prompt)
    assert "It is 2026-08-03 12:00 UTC now" in prompt or "it is 2026-08-03 12:00 UTC now" in prompt
    assert left["score"] > ward["score"]


async def test_insights_drawn_before_a_change_do_not_come_back_as_new(clock: Clock) -> None:
    talk = Talk(keeper, reflect_at=5)
    await talk.say(WARD)
    insight = next(memory for memory in await talk.all() if memory["kind"] == "reflection")
    assert "until" not in insight
    clock.now = JULY
    await talk.say(QUIT, reflect_at=1000)
    insight = next(memory for memory in await talk.all() if memory["kind"] == "reflection")
    assert insight["until"] == pytest.approx(JULY, abs=1)
    clock.now = AUGUST
    await talk.say(WHERE, reflect_at=1000)
    assert re.search(r'kind="reflection" of="2026-05-03[^"]*" superseded="2026-07-03', shown(talk.answered()[-1]))


async def test_the_model_is_told_what_is_known_and_the_answer_is_no_evidence(clock: Clock) -> None:
    talk = Talk(keeper)
    await talk.say(WARD)
    clock.now = JULY
    await talk.say(QUIT)
    request = next(call for call in reversed(talk.model.calls) if call.schema == "Facts")
    assert "It is 2026-07-03 12:00 UTC. Today is a Friday." in request.last, "or nobody could date 'last Monday'"
    known, message = request.last.split("<said", 1)
    assert '<memory number="1" kind="fact" of="2026-05-03 12:00 UTC">\nThe user works in a paediatric ward.' in known
    assert message.startswith(f' by="user">\n{QUIT}\n</said>\n<answer by="assistant">\nI see.')
    memories = {memory["text"]: memory for memory in await talk.all()}
    left = memories["The user has quit and works nowhere."]
    assert left["supersedes"] == [memories["The user works in a paediatric ward."]["id"]], "99 was not shown"
    assert left["evidence"] == [memories[QUIT]["id"]]
    assert memories["I see."]["importance"] == 1


async def test_questions_and_thanks_leave_no_fact_and_cost_no_more_calls() -> None:
    talk = Talk(keeper)
    for text in ("What is a ward?", "Thank you!"):
        out = await talk.say(text)
        assert out["usage"]["model_calls"] == 2
    kept = await talk.all()
    assert {memory["kind"] for memory in kept} == {"observation"}
    assert {memory["importance"] for memory in kept} == {1.0}


async def test_a_prompt_says_everything_once(clock: Clock) -> None:
    talk = Talk(keeper, reflect_at=5)
    for thread in ("a", "b", "c"):
        clock.now += 60
        await talk.say(WARD, thread=thread)
    clock.now = AUGUST
    out = await talk.say(WHERE, thread="d")
    prompt = talk.answered()[-1].text
    assert prompt.count(WARD) == 1, "below the insight that rests on it"
    assert prompt.count("The user works in a paediatric ward.") == 1
    assert prompt.count("The user cares for sick children.") == 1
    fact = next(memory for memory in out["memories"] if memory["kind"] == "fact")
    assert [memory["text"] for memory in await talk.all() if memory["kind"] == "fact"] == [fact["text"]], "kept once"


async def test_a_turn_stands_below_its_fact_where_it_alone_has_a_word_of_the_question(clock: Clock) -> None:
    talk = Talk(keeper)
    message = f"Hi! {WARD} By the way, is there a rota beside the aquarium?"
    await talk.say(message, thread="a")
    for question, times in (("What about the aquarium?", 1), ("Do I work?", 0), ("Good morning!", 0)):
        clock.now += 60
        await talk.say(question)
        prompt = talk.answered()[-1].text
        assert (prompt.count("The user works in a paediatric ward."), prompt.count(message)) == (1, times), question


async def test_a_turn_that_says_much_more_than_its_fact_stands_below_it(clock: Clock) -> None:
    talk = Talk(keeper)
    message = f"{WARD} Before that I drove lorries across Norway, painted fences and taught chess."
    await talk.say(message, thread="a")
    clock.now += 60
    await talk.say("Good morning!")
    assert talk.answered()[-1].text.count(f"- because: user: {message}") == 1


async def test_what_superseded_a_fact_comes_before_it_however_the_question_is_put(clock: Clock) -> None:
    talk = Talk(keeper)
    await talk.say(WARD)
    clock.now = JULY
    await talk.say(QUIT)
    clock.now = AUGUST
    out = await talk.say("What is it like in the paediatric ward?")
    facts = [memory["text"] for memory in out["memories"] if memory["kind"] == "fact"]
    assert facts == ["The user has quit and works nowhere.", "The user works in a paediatric ward."]
    assert [memory["number"] for memory in out["memories"]] == [*range(1, len(out["memories"]) + 1)]


async def test_what_all_memories_rest_on_is_read_at_once(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(keeper, reflect_at=5)
    for thread in ("a", "b"):
        clock.now += 60
        await talk.say(f"{WARD} Number {thread}.", thread=thread)
    read: list[list[str]] = []

    async def get(stream: MemoryStream, ids: Iterable[str]) -> list[Memory]:
        read.append([*ids])
        return await plain(stream, read[-1])

    plain = MemoryStream.get
    monkeypatch.setattr(MemoryStream, "get", get)
    out = await talk.say(WHERE, thread="c", reflect_at=1000)
    assert len(out["memories"]) > 2
    assert len(read) == 2, "once to show them, once to look what is known already"


async def test_what_stands_in_the_thread_is_no_memory_in_it(clock: Clock) -> None:
    talk = Talk(keeper)
    await talk.say(WARD, thread="a")
    clock.now += 60
    out = await talk.say(QUIT, thread="a")
    assert [memory["text"] for memory in out["memories"]] == ["The user works in a paediatric ward."], (
        "which alone says May"
    )
    assert talk.answered()[-1].text.count(WARD) == 1
    clock.now += 60
    found = [memory["text"] for memory in (await talk.say(WHERE, thread="a"))["memories"]]
    assert found == ["The user works in a paediatric ward."], "the other one has no date"
    clock.now += 60
    assert [memory["kind"] for memory in (await talk.say(WHERE, thread="b"))["memories"]][:1] == ["fact"]


async def test_turns_of_other_days_are_dated_in_the_thread(clock: Clock) -> None:
    talk = Talk(keeper)
    await talk.say(WARD, thread="a")
    clock.now += 60
    await talk.say("Thank you!", thread="a")
    assert [message.text for message in talk.answered()[-1].messages][1:3] == [WARD, "I see."]
    clock.now = JULY
    await talk.say([{"type": "text", "text": QUIT}], thread="a")
    clock.now = AUGUST
    await talk.say(WHERE, thread="a")
    users = [message.text for message in talk.answered()[-1].messages if message.type == "human"]
    assert users[:2] == [f"(said on Sunday, 2026-05-03)\n{WARD}", "Thank you!"]
    assert users[2].startswith("(said on Friday, 2026-07-03)")
    assert users[-1] == WHERE
    kept = [memory["text"] for memory in await talk.all()]
    assert not any("said on" in text for text in kept)


async def test_no_insight_rests_on_what_the_assistant_said() -> None:
    def inventing(request: Request) -> Reply:
        return keeper(request) if request.schema else "As you love sailing, go to the lake."

    talk = Talk(inventing, reflect_at=5)
    await talk.say(WARD)
    [request] = [call for call in talk.model.calls if call.schema == "Insights"]
    assert WARD in request.last
    assert "sailing" not in request.last


async def test_a_fact_that_an_insight_rests_on_can_still_be_superseded_in_its_thread(clock: Clock) -> None:
    def citing(request: Request) -> Reply:
        if request.schema == "Insights":
            ground = numbers(request, "The user works in a paediatric ward.")
            return {"insights": [{"insight": "The user cares for sick children.", "evidence": ground, "importance": 7}]}
        return keeper(request)

    talk = Talk(citing, reflect_at=5)
    await talk.say(WARD, thread="a")
    assert [memory["archived"] for memory in await talk.all() if memory["kind"] == "fact"] == [True]
    clock.now = JULY
    await talk.say(QUIT, thread="a", reflect_at=1000)
    held = {memory["text"]: "until" not in memory for memory in await talk.all() if memory["kind"] != "observation"}
    assert held == {
        "The user works in a paediatric ward.": False,
        "The user cares for sick children.": False,
        "The user has quit and works nowhere.": True,
    }


@pytest.mark.thorough
async def test_what_the_assistant_said_takes_a_third_of_the_places_at_most() -> None:
    def chatty(request: Request) -> Reply:
        return keeper(request) if request.schema else f"Trams, trams, trams: answer {len(request.messages[-1].text)}!"

    talk = Talk(chatty)
    for number in range(8):
        await talk.say(f"Story {number} {'of' * number} a tram.")
    for retrieved, answers in ((9, 3), (6, 2), (2, 1)):
        out = await talk.say("Trams?", retrieved=retrieved, thread=f"t{retrieved}")
        speakers = [memory["speaker"] for memory in out["memories"]]
        assert (len(speakers), speakers.count("assistant")) == (retrieved, answers)


async def test_grounds_that_stand_in_the_thread_are_not_shown_again(clock: Clock) -> None:
    def undated(request: Request) -> Reply:
        if request.schema == "Facts" and WARD in request.last:
            return {"facts": [{**FACT, "statement": "The user works in a paediatric ward."}]}
        return keeper(request)

    talk = Talk(undated, reflect_at=5)
    await talk.say(WARD, thread="a")
    insight = next(memory for memory in await talk.all() if memory["kind"] == "reflection")
    fact = next(memory for memory in await talk.all() if memory["kind"] == "fact")
    again = new_memory("The user is gentle.", created=MAY + 60, kind="reflection", evidence=[fact["id"], insight["id"]])
    await (await talk.stream()).add([again])
    clock.now = AUGUST
    for thread, times in (("a", 0), ("b", 1)):
        out = await talk.say("Am I gentle?", thread=thread, reflect_at=1000)
        assert "The user is gentle." in [memory["text"] for memory in out["memories"]]
        assert talk.answered()[-1].text.count(fact["text"]) == times


async def test_equal_insights_are_merged_with_their_evidence(clock: Clock) -> None:
    def same_again(request: Request) -> Reply:
        if request.schema == "Insights":
            drawn = [("Bakers rise early.", [1]), ("bakers rise early", [2]), ("Bakers sleep.", [1])]
            return {"insights": [{"insight": text, "evidence": on, "importance": 5} for text, on in drawn]}
        return keeper(request)

    talk = Talk(same_again, reflect_at=1)
    await talk.say("I bake. " + WARD)
    clock.now += 60
    await talk.say("And again. " + WARD)
    insights = [memory for memory in await talk.all() if memory["kind"] == "reflection"]
    assert {memory["text"]: len(memory["evidence"]) for memory in insights} == {
        "Bakers rise early.": 2,
        "Bakers sleep.": 1,
    }
    assert len(insights) == 2


@pytest.mark.thorough
async def test_one_insight_is_enough_and_one_question_too(clock: Clock) -> None:
    talk = Talk(keeper, reflect_at=1000)
    for number in range(31):
        clock.now += 60
        await talk.say(f"Is {number} even?")
    clock.now += 60
    out = await talk.say(WARD, reflect_at=5)
    assert out["usage"]["model_calls"] == 4, "answer, facts, questions, insights of the one question"
    assert out["usage"]["parse_failures"] == 0


async def test_what_can_be_shown_whole_is_shown_to_one_call() -> None:
    talk = Talk(keeper, reflect_at=5)
    out = await talk.say(WARD)
    assert out["usage"]["model_calls"] == 3, "answer, facts, insights"
    assert [call.text.count(WARD) for call in talk.model.calls if call.schema == "Insights"] == [1]


async def test_a_model_that_cannot_reflect_is_not_asked_again_at_every_turn() -> None:
    def unable(request: Request) -> Reply:
        return "No." if request.schema == "Insights" else keeper(request)

    talk = Talk(unable, reflect_at=5)
    out = await talk.say(WARD)
    assert (out["answer"], out["usage"]["model_calls"]) == ("I see.", 2 + 3)
    assert "not_reflected" in [event["event"] for event in talk.events]
    assert (await talk.say("Thank you!"))["usage"]["model_calls"] == 2


async def test_memories_of_a_reflection_stand_in_order_with_their_dates(clock: Clock) -> None:
    talk = Talk(keeper, reflect_at=1000)
    for month, text in ((JULY, "Later."), (AUGUST, "Latest."), (AUGUST + 60, "Last.")):
        clock.now = month
        await talk.say(text)
    clock.now += 60
    await talk.say(WARD, reflect_at=0)
    request: Any = next(call for call in talk.model.calls if call.schema == "Insights")
    dates = re.findall(r' of="([^"]+)"', request.last)
    assert len(dates) > 3
    assert dates == sorted(dates)
    assert '<memory number="1" kind="observation" by="user" of="2026-07-03 12:00 UTC">\nLater.' in request.last


async def test_what_was_asked_before_helps_to_understand_a_yes(clock: Clock) -> None:
    def asking(request: Request) -> Reply:
        return "Are you a vegetarian?" if not request.schema and "Hello" in request.last else keeper(request)

    talk = Talk(asking)
    await talk.say("Hello", thread="a")
    clock.now += 60
    await talk.say("Yes, I am.", thread="a")
    request = next(call for call in reversed(talk.model.calls) if call.schema == "Facts")
    assert '<before by="assistant">\nAre you a vegetarian?\n</before>\n<said by="user">\nYes, I am.' in request.last
    assert "<before" not in next(call for call in talk.model.calls if call.schema == "Facts").last
