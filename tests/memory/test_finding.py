"""Finding what was said: by words and meaning, beside its neighbours, by whom, when, and later before earlier."""

import math
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from pydantic import ValidationError

from reflective_agents.memory.postings import Postings, hashed, pack
from reflective_agents.memory.rankings import named, names
from reflective_agents.memory.rankings.hybrid import RANKING as HYBRID
from reflective_agents.memory.rankings.hybrid import bm25
from reflective_agents.memory.rankings.paper import Paper
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.memory.timeline import Timeline
from reflective_agents.models.lexical import LexicalEmbeddings
from reflective_agents.state.errors import Misuse
from reflective_agents.state.memories import Memory, new_memory
from reflective_agents.state.settings.memory import MemoryContext
from tests.memory.windows import Window, items

DAY = 86_400.0
MAY, JULY, AUGUST = (datetime(2026, month, 3, 12, tzinfo=UTC).timestamp() for month in (5, 7, 8))


async def memory_of(*memories: Memory) -> MemoryStream:
    stream = await MemoryStream.open(InMemoryStore(), "anna", "lexical")
    await stream.add(memories)
    return stream


def turn(text: str, at: float, speaker: str = "user", conversation: str = "a", **rest: Any) -> Memory:
    return new_memory(text, created=at, speaker=speaker, conversation=conversation, key=text, **rest)


async def found(stream: MemoryStream, query: str, now: float = AUGUST, **rest: Any) -> list[str]:
    return [
        scored.memory["text"] for scored in await stream.retrieve(query, now=now, **{"k": 1, "renew": False, **rest})
    ]


CHATTER = [turn(f"Small talk number {n} about nothing.", MAY + n * DAY, conversation=f"c{n}") for n in range(30)]


async def test_a_rare_word_finds_what_it_was_said_with() -> None:
    spoken = turn("We took the Zephyrine to get there.", MAY)
    stream = await memory_of(*CHATTER, spoken)
    assert await found(stream, "What is the zephyrine?") == [spoken["text"]]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("\u6211\u59d0\u59d0\u963f\u8fbe\u4f4f\u5728\u90fd\u7075\u3002", "\u963f\u8fbe\u4f4f\u5728\u54ea\u91cc\uff1f"),
        (
            "\u0e1e\u0e35\u0e48\u0e2a\u0e32\u0e27\u0e2d\u0e22\u0e39\u0e48\u0e17\u0e35\u0e48\u0e15\u0e39\u0e23\u0e34\u0e19",
            "\u0e1e\u0e35\u0e48\u0e2a\u0e32\u0e27\u0e2d\u0e22\u0e39\u0e48\u0e17\u0e35\u0e48\u0e44\u0e2b\u0e19",
        ),
    ],
)
async def test_words_are_found_in_scripts_without_blanks(text: str, question: str) -> None:
    other = "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u3002"
    stream = await memory_of(*CHATTER, turn(text, MAY), turn(other, JULY))
    assert await found(stream, question) == [text]


class Alike(Embeddings):
    """Embeddings to which all texts mean the same, so that their words alone tell them apart."""

    def embed_query(self, text: str) -> list[float]:
        return [1.0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0]] * len(texts)


def conversation(begin: float, *texts: str) -> list[Memory]:
    """What a user says in a conversation of its own, a turn a minute."""
    where = f"at {begin}"
    return [
        new_memory(text, created=at, speaker="user", conversation=where, key=f"{at}")
        for at, text in ((begin + 60 * number, text) for number, text in enumerate(texts))
    ]


async def ranked(query: str, *memories: Memory, by: Embeddings) -> list[Memory]:
    """All memories, best first: by the words of the query, or by its meaning alone where embeddings tell any."""
    stream = await MemoryStream.open(InMemoryStore(), "anna", by)
    await stream.add([*CHATTER, *memories])
    query_vector = query if isinstance(by, Alike) else by.embed_query(query)
    return [scored.memory for scored in await stream.retrieve(query_vector, k=100, now=AUGUST, renew=False)]


# In each of these tests two memories have the same words, and recency speaks for the one that is not looked for.


@pytest.mark.parametrize("by", [Alike(), LexicalEmbeddings()])
async def test_a_turn_beside_what_fits_comes_before_one_further_off(by: Embeddings) -> None:
    fun = "It was fun."
    _, near, _, _, far, _ = talk = conversation(MAY - DAY, "We saw the opera.", fun, "Yes.", "No.", fun, "Bye.")
    order = await ranked("Who saw the opera?", *talk, by=by)
    assert order.index(near) < order.index(far)


@pytest.mark.parametrize("by", [Alike(), LexicalEmbeddings()])
async def test_a_turn_of_a_conversation_that_fits_comes_before_one_of_another(by: Embeddings) -> None:
    *_, right = opera = conversation(MAY - DAY, "We saw the opera.", "Yes.", "No.", "It was fun.")
    *_, wrong = market = conversation(MAY - DAY + 7200, "We saw the market.", "Yes.", "No.", "It was fun.")
    order = await ranked("Who saw the opera?", *opera, *market, by=by)
    assert order.index(right) < order.index(wrong)


async def test_a_turn_with_some_substance_comes_before_one_that_says_as_little_as_fits() -> None:
    short, long = turn("Paint!", MAY + DAY), turn("I mixed ochre, umber and white on the old oak board.", MAY)
    order = await ranked("Which colours?", short, long, by=Alike())
    assert order.index(long) < order.index(short)


@pytest.mark.parametrize("mark", ["?", "\uff1f", "\u061f"])
async def test_a_statement_comes_before_a_question_in_the_same_words_also_when_it_is_read_again(mark: str) -> None:
    question, statement = turn(f"You paint boats{mark} ", MAY + DAY), turn("You paint boats!", MAY)
    store = InMemoryStore()
    for _ in range(2):
        stream = await MemoryStream.open(Window(store), "anna", Alike())
        await stream.add([question, statement])
        order = await found(stream, "Which boats?", k=2)
        assert order == [statement["text"], question["text"]]


async def test_who_is_named_is_who_said_it_and_not_who_was_spoken_of() -> None:
    ada = turn("Bob likes the puppy.", MAY, speaker="Ada", conversation="a")
    bob = turn("Ada likes the puppy.", MAY + 20, speaker="Bob", conversation="b")
    assert (await ranked("What did Ada say about the puppy?", ada, bob, by=Alike()))[0] == ada
    assert (await ranked("What did Bob say about the puppy?", ada, bob, by=Alike()))[0] == bob


@pytest.mark.parametrize("time", ["last May", "in May 2026", "13 weeks ago", "on 28 April 2026", "on 5 May 2026"])
async def test_a_time_that_is_named_prefers_what_was_said_then_or_about_then(time: str) -> None:
    may, july = (new_memory("We went to the lake.", created=at, key=str(at)) for at in (MAY, JULY))
    assert (await ranked(f"Who went to the lake {time}?", may, july, by=Alike()))[0] == may


async def test_the_turn_beside_what_fits_comes_before_turns_elsewhere() -> None:
    question = turn("Which instrument does Ada play?", MAY, speaker="assistant")
    answer = turn("The viola da gamba.", MAY + 20)
    stream = await memory_of(*CHATTER[5:], question, answer)
    assert await found(stream, "Which instrument does Ada play?", k=2) == [question["text"], answer["text"]]
    apart = await memory_of(*CHATTER[5:], question, turn(answer["text"], MAY + 20, conversation="another"))
    assert answer["text"] not in await found(apart, "Which instrument does Ada play?", k=2)


async def test_of_two_statements_that_fit_alike_the_later_one_wins_also_when_the_earlier_was_asked_for() -> None:
    may, july = (
        turn("I live in Turin now.", MAY, conversation="may"),
        turn("I live in Lyon now.", JULY, conversation="july"),
    )
    stream = await memory_of(may, july, *CHATTER)
    question = "Where do I live now?"
    assert await found(stream, question, k=2) == [july["text"], may["text"]]
    await stream.renew({may["id"]: AUGUST - 60})
    assert await found(stream, question, k=2) == [july["text"], may["text"]]
    paper = Paper(recency=3, importance=0, relevance=3)
    assert await found(stream, question, ranking=paper) == [may["text"]]


async def test_old_memories_are_told_apart_and_not_buried() -> None:
    """Under the paper's decay all that is months old is equal, and what was said today comes before what fits."""
    old = turn("My blood type is AB negative.", MAY)
    recent = [turn(f"Good morning to you, day {n}.", AUGUST - n * DAY, conversation=f"d{n}") for n in range(20)]
    stream = await memory_of(old, *recent)
    assert await found(stream, "What is my blood type?") == [old["text"]]


async def test_what_an_insight_rests_on_is_found_on_its_own() -> None:
    """60 facts, 24 insights that each cite five of them."""
    facts = [
        turn(f"Item{n:02} lies in drawer{(7 * n) % 60:02}.", MAY + n * DAY / 4, conversation=f"f{n}") for n in range(60)
    ]
    insights = [
        new_memory(
            f"Many items lie in drawers, group {n}.",
            created=JULY + n,
            kind="reflection",
            importance=5,
            evidence=[facts[(5 * n + number) % 60]["id"] for number in range(5)],
        )
        for n in range(24)
    ]
    stream = await memory_of(*facts, *insights)
    hits = [fact["text"] in await found(stream, f"Where is item{n:02}?", k=10) for n, fact in enumerate(facts)]
    assert sum(hits) == 60
    assert [fact["archived"] for fact in await stream.get([memory["id"] for memory in facts])] == [True] * 60
    assert await found(stream, "Where is item07?", k=10, ranking=Paper()) != []
    assert facts[7]["text"] not in await found(stream, "Where is item07?", k=10, ranking=Paper())


async def test_what_is_in_the_archive_ranks_below_what_fits_as_well() -> None:
    below, beside = turn("Ada paints.", MAY), turn("Ada paints .", MAY, conversation="b")
    insight = new_memory("Quite another thing.", created=JULY, kind="reflection", evidence=[below["id"]])
    assert (await found(await memory_of(below, beside, insight), "Ada paints", k=2))[0] == beside["text"]


async def test_what_is_superseded_stays_with_its_time_and_ranks_below() -> None:
    spoken = turn("I work in a paediatric ward.", MAY)
    ward = new_memory("The user works in a paediatric ward.", created=MAY + 1, kind="fact", evidence=[spoken["id"]])
    insight = new_memory("The user loves the ward.", created=MAY + DAY, kind="reflection", evidence=[spoken["id"]])
    left = new_memory("The user no longer works.", created=JULY, kind="fact", supersedes=[ward["id"]])
    late = new_memory("The user left the ward.", created=AUGUST, kind="reflection", evidence=[spoken["id"], left["id"]])
    store = InMemoryStore()
    stream = await MemoryStream.open(store, "anna", "lexical")
    await stream.add([spoken, ward, insight])
    assert "until" not in (await stream.get([ward["id"]]))[0]
    await stream.add([left, late])
    ids = [memory["id"] for memory in (spoken, ward, insight, left, late)]
    expected = [None, JULY, JULY, None, None]
    assert [memory.get("until") for memory in await stream.get(ids)] == expected
    again = await MemoryStream.open(InMemoryStore(), "anna", "lexical")
    await again.add([late, left, insight, ward, spoken])
    assert [memory.get("until") for memory in await again.get(ids)] == expected
    await stream.delete(left["id"])
    assert [memory.get("until") for memory in await stream.get(ids)] == [None, None, None, None]


async def test_what_only_a_deleted_memory_superseded_holds_again_after_others_came() -> None:
    left = turn("Ada lives in Leeds.", MAY)
    moved = new_memory("Ada lives in York.", created=JULY, kind="fact", supersedes=[left["id"]])
    stream = await memory_of(left, moved)
    assert "until" in (await stream.get([left["id"]]))[0]
    await stream.delete(moved["id"])
    await stream.add([turn("Trams are late.", JULY)])
    assert "until" not in (await stream.get([left["id"]]))[0]


def test_a_ranking_is_a_value_and_no_class() -> None:
    assert MemoryContext(ranking=HYBRID).ranking is HYBRID
    with pytest.raises(ValidationError):
        MemoryContext(ranking=type(HYBRID))


async def test_what_is_said_now_may_be_left_out() -> None:
    first, second = turn("I like figs.", MAY), turn("I like dates.", MAY + 20, conversation="now")
    stream = await memory_of(first, second)
    assert await found(stream, "What do I like?", k=5, apart_from="now") == [first["text"]]
    assert len(await found(stream, "What do I like?", k=5, apart_from="never seen")) == 2
    assert await found(stream, "What do I like?", k=5, kinds=["fact"]) == []


async def test_rankings_are_found_by_name_and_hybrid_is_the_default() -> None:
    assert {"hybrid", "paper"} <= {*names()}
    assert named("hybrid") == HYBRID
    stream = await memory_of(*CHATTER)
    assert await found(stream, "number 7", k=5) == await found(stream, "number 7", k=5, ranking=HYBRID)
    assert await found(stream, "number 7", k=5) != await found(stream, "number 7", k=5, ranking=named("paper"))


async def test_memories_of_an_earlier_version_get_their_words_when_they_are_first_opened() -> None:
    store = InMemoryStore()
    spoken = turn("We took the Zephyrine to get there.", MAY)
    await (await MemoryStream.open(store, "anna", "lexical")).add([spoken, *CHATTER])
    whole = items(store)
    for (*namespace, key), value in whole.items():
        if namespace[2] == "index":
            await store.aput(tuple(namespace), key, {name: part for name, part in value.items() if name != "words"})
    stream = await MemoryStream.open(Window(store), "anna", LexicalEmbeddings())
    assert await found(stream, "What is the zephyrine?") == [spoken["text"]]
    words = [value for key, value in items(store).items() if key[2] == "index"]
    assert all(value["words"] for value in words)
    assert len(words) == 1 + len(CHATTER)


async def test_a_corrected_text_is_found_by_its_new_words_in_every_process() -> None:
    store = InMemoryStore()
    spoken = turn("My sister lives in Turin.", MAY)
    top = new_memory("The family is abroad.", created=JULY, kind="reflection", evidence=[spoken["id"]])
    first = await MemoryStream.open(Window(store), "anna", LexicalEmbeddings())
    await first.add([spoken, top, *CHATTER])
    second = await MemoryStream.open(Window(store), "anna", LexicalEmbeddings())
    assert await found(second, "Who is in Turin?") == [spoken["text"]]
    edited = await first.edit(spoken["id"], "My sister lives in Zagreb.")
    assert edited == {**spoken, "text": "My sister lives in Zagreb.", "archived": True}
    assert await found(second, "Who is in Zagreb?") == [edited["text"]]
    assert await second.evidence(top["id"]) == [edited]
    with pytest.raises(Misuse, match="no memory"):
        await first.edit("0" * 32, "No.")


async def test_gaps_that_deletions_leave_are_closed_and_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflective_agents.memory.index.HOLES", 3)
    stream = await memory_of(*CHATTER, *(turn(f"Rareword{n} and such.", JULY + n, conversation="r") for n in range(12)))
    for text in CHATTER[:25]:
        await stream.delete(text["id"])
    for n in range(12):
        assert (await found(stream, f"Rareword{n}"))[0] == f"Rareword{n} and such."
    assert await stream.count() == 5 + 12


@pytest.mark.parametrize("many", [0, 10**9])
async def test_words_count_the_same_whether_many_memories_hold_them_or_few(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word that many hold is counted in all memories at once, another where it is held."""
    stream = await memory_of(*CHATTER, turn("Small figs, small dates.", JULY), turn("And a nut.", JULY + 20))
    await stream.delete(CHATTER[3]["id"])
    query = "Small figs, number 7 and a nut?"
    usual = await stream.retrieve(query, k=40, now=AUGUST, renew=False)
    monkeypatch.setattr("reflective_agents.memory.rankings.hybrid.COMMON_WORD", many)
    other = await stream.retrieve(query, k=40, now=AUGUST, renew=False)
    assert [scored.memory["text"] for scored in other] == [scored.memory["text"] for scored in usual]
    assert [scored.relevance for scored in other] == pytest.approx([scored.relevance for scored in usual], abs=1e-6)
    assert usual[0].memory["text"] == "Small figs, small dates."


def test_words_are_weighed_as_bm25_has_it() -> None:
    """Robertson and Zaragoza 2009, with k1 = 1.2 and b = 0.75, worked out word by word."""
    texts = [["fig", "fig", "date"], ["fig"], ["nut", "date", "date", "date"], ["pea"], ["oat"], ["rye"]]
    postings, count = Postings(), len(texts)
    lengths = postings.add(0, [pack(Counter(text)) for text in texts])
    columns = {
        "id": np.array([b"%032x" % number for number in range(count)]),
        "alive": np.ones(count, np.bool_),
        "created": 1e5 * np.arange(count),
        "importance": np.ones(count),
        "conversation": np.zeros(count, np.int32),
        "asks": np.zeros(count, np.bool_),
        "length": lengths,
    }
    matching, near = bm25(
        Timeline(columns, np.ones(count, np.bool_)), postings, frozenset(map(hashed, ("fig", "date", "plum")))
    )
    mean = sum(map(len, texts)) / count

    def weight(text: list[str], word: str) -> float:
        held, times = sum(word in text for text in texts), text.count(word)
        rarity = math.log((count - held + 0.5) / (held + 0.5))
        return rarity * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(text) / mean))

    assert matching == pytest.approx([weight(text, "fig") + weight(text, "date") for text in texts])
    assert near == pytest.approx(matching), "a day lies between the turns"


async def test_memories_of_the_same_second_have_the_same_neighbours_in_every_process() -> None:
    together = [turn(f"Said at once, {name}.", MAY) for name in ("figs", "dates", "nuts", "peas")]
    found_first = [
        [
            (scored.memory["text"], scored.score)
            for scored in await stream.retrieve("figs", k=9, now=AUGUST, renew=False)
        ]
        for stream in (await memory_of(*together, *CHATTER[:4]), await memory_of(*CHATTER[:4], *reversed(together)))
    ]
    assert found_first[0] == found_first[1]
