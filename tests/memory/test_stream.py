"""The memory stream: what is remembered, found, renewed, archived, deleted and forgotten."""

import asyncio
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from reflective_agents.memory import replica
from reflective_agents.memory.entries import Entry
from reflective_agents.memory.index import Index
from reflective_agents.memory.queries import Query
from reflective_agents.memory.rankings.paper import RANKING as PUBLISHED
from reflective_agents.memory.rankings.paper import Paper
from reflective_agents.memory.stream import MemoryStream, Scored
from reflective_agents.models.meter import Meter
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, Misuse, ModelFailed
from reflective_agents.state.memories import BEGINNING, Mark, Memory, memory_id, new_memory
from reflective_agents.state.run import NOTHING_SPENT
from tests.memory.windows import Letters, Window, items, open_window

HOUR = 3600.0


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


def seen(text: str, created: float = 0.0, importance: float = 1.0, **rest: Any) -> Memory:
    return new_memory(text, created=created, importance=importance, key=rest.pop("key", text), **rest)


def insight(text: str, *evidence: Memory, created: float = 0.0, importance: float = 5.0) -> Memory:
    below = [memory["id"] for memory in evidence]
    return seen(text, created, importance, kind="reflection", evidence=below)


def texts(found: list[Any]) -> list[str]:
    return [(memory.memory if isinstance(memory, Scored) else memory)["text"] for memory in found]


async def test_a_memory_comes_back_as_it_was_added(store: InMemoryStore) -> None:
    memory = new_memory("Bob bakes.", created=5.0, importance=3)
    stream = await open_window(store)
    assert await stream.add([memory]) == ([memory["id"]], [])
    assert await stream.get([memory["id"], "0" * 32]) == [memory]
    assert await (await open_window(store)).get([memory["id"]]) == [memory]


async def test_retrieval_weighs_recency_importance_and_relevance(store: InMemoryStore) -> None:
    stream = await open_window(store)
    await stream.add([seen("aaa", 0, 9), seen("aab", 2 * HOUR, 5), seen("bbb", HOUR, 1)])
    found = {scored.memory["text"]: scored for scored in await stream.retrieve("a", k=3, now=3 * HOUR, ranking=Paper())}
    decayed = {"aaa": 0.995**3, "aab": 0.995**1, "bbb": 0.995**2}
    low, high = decayed["aaa"], decayed["aab"]
    assert found["aaa"].recency == 0
    assert found["aab"].recency == 1
    assert found["bbb"].recency == pytest.approx((decayed["bbb"] - low) / (high - low))
    assert [found[text].importance for text in ("aaa", "aab", "bbb")] == [1, 0.5, 0]
    assert found["aab"].relevance == pytest.approx(2 / math.sqrt(5), abs=1e-3)
    assert [found[text].relevance for text in ("aaa", "bbb")] == [1, 0]
    assert found["aab"].score == pytest.approx((1 + 0.5 + 2 / math.sqrt(5)) / 3, abs=1e-3)
    assert list(found) == ["aab", "aaa", "bbb"]
    assert texts(await stream.retrieve("b", k=1, now=3 * HOUR, ranking=PUBLISHED)) == ["bbb"]
    assert texts(await stream.retrieve("b", k=1, now=3 * HOUR, ranking=Paper(0, 1, 0))) == ["aaa"]


async def test_a_process_that_reads_the_vectors_finds_what_the_one_that_made_them_finds(store: InMemoryStore) -> None:
    stream = await open_window(store)
    await stream.add([seen(text) for text in ("aab", "abbcc", "abcdefg", "zzy")])
    expected = await stream.retrieve("abz", k=4, now=0)
    assert await (await open_window(store)).retrieve("abz", k=4, now=0) == expected


async def test_what_was_seen_last_is_the_most_recent_and_retrieval_renews_it(store: InMemoryStore) -> None:
    """The published code ranks recency the wrong way round, and never reads the time that it renews."""
    stream = await open_window(store)
    await stream.add([seen("aaa", 0), seen("bbb", HOUR)])
    only_recency = Paper(1, 0, 0)
    peeked = await stream.retrieve("a", k=2, now=2 * HOUR, ranking=only_recency, renew=False)
    assert texts(peeked) == ["bbb", "aaa"]
    assert texts(await stream.retrieve("a", k=1, now=2 * HOUR, ranking=Paper(0, 0, 1))) == ["aaa"]
    for view in (stream, await open_window(store)):
        found = await view.retrieve("a", k=2, now=2 * HOUR, ranking=only_recency, renew=False)
        assert texts(found) == ["aaa", "bbb"]
        assert [scored.memory["accessed"] for scored in found] == [2 * HOUR, HOUR]


async def test_an_access_is_never_set_back(store: InMemoryStore) -> None:
    stream = await open_window(store)
    await stream.add([seen("aaa", 5 * HOUR)])
    await stream.retrieve("a", k=1, now=9 * HOUR)
    await stream.retrieve("a", k=1, now=HOUR)
    assert [memory["accessed"] async for memory in stream.everything()] == [9 * HOUR]


async def test_a_query_may_be_a_vector(store: InMemoryStore) -> None:
    stream = await open_window(store)
    assert await stream.retrieve([1.0, 2.0], k=3, now=0) == []
    await stream.add([seen("aaa"), seen("bbb")])
    by_vector = await stream.retrieve([7.0] + [0.0] * 25, k=2, now=0)
    assert by_vector == await stream.retrieve("a", k=2, now=0)
    for wrong in ([1.0, 2.0], [math.nan] * 26, [[1.0] * 26]):
        with pytest.raises(Misuse, match="vector"):
            await stream.retrieve(np.array(wrong), k=2, now=0)


async def test_an_access_may_be_told_afterwards(store: InMemoryStore) -> None:
    stream, other = await open_window(store), await open_window(store)
    early, late = seen("aaa", 1), seen("bbb", 5)
    await stream.add([early, late])
    await stream.renew({early["id"]: 3.0, late["id"]: 4.0, "0" * 32: 9.0})
    for view in (stream, other, await open_window(store)):
        assert [memory["accessed"] for memory in await view.get([early["id"], late["id"]])] == [3, 5]
    before = items(store)
    await stream.renew({early["id"]: 2.0})
    assert items(store) == before
    with pytest.raises(Misuse, match="finite number of seconds"):
        await stream.renew({early["id"]: math.nan})


async def test_impossible_questions_are_refused(store: InMemoryStore) -> None:
    stream = await open_window(store)
    with pytest.raises(Misuse, match="finite number of seconds"):
        await stream.retrieve("a", k=1, now=math.nan)
    with pytest.raises(Misuse, match="weights"):
        await stream.retrieve("a", k=1, now=0, ranking=Paper(0, 0, 0))
    assert await stream.retrieve("a", k=0, now=0) == []


@pytest.mark.parametrize(
    ("text", "rest"),
    [(" \0 ", {}), ("a", {"importance": 0.5}), ("a", {"importance": math.nan}), ("a", {"created": math.inf})],
)
def test_an_impossible_memory_is_refused(text: str, rest: dict[str, float]) -> None:
    with pytest.raises(Misuse):
        new_memory(text, **{"created": 0.0, **rest})  # type: ignore[arg-type]


async def test_what_no_database_can_store_is_taken_out(store: InMemoryStore) -> None:
    memory = new_memory("a\0b\ud800c \N{GRINNING FACE}", created=0)
    assert memory["text"] == "abc \N{GRINNING FACE}"


async def test_a_key_makes_the_same_memory_once(store: InMemoryStore) -> None:
    first, second = await open_window(store), await open_window(store)
    await first.add([seen("aaa", key="turn 1"), seen("bbb", key="turn 2"), seen("ccc", key="turn 2")])
    assert (await second.add([seen("other words", key="turn 1")])).added == []
    assert texts([memory async for memory in second.everything()]) == texts(
        await first.get(sorted([memory_id("turn 1"), memory_id("turn 2")]))
    )
    assert await first.count() == 2


async def test_owners_never_mix(store: InMemoryStore) -> None:
    names = ["anna", "an.na", "an%2Ena", "anna.b", "*", "an_a", "Anna", "\N{SNOWMAN}", "anna/index", "x" * 900]
    for name in names:
        await (await open_window(store, name)).add([seen("aaa", key="the same")])
    await (await open_window(store, "anna")).forget_all()
    assert [await (await open_window(store, name)).count() for name in names] == [0] + [1] * (len(names) - 1)
    assert not [key for key in items(store) if key[1] == "anna"]


@pytest.mark.parametrize("owner", ["", "x" * 1001])
async def test_an_impossible_owner_is_refused(store: InMemoryStore, owner: str) -> None:
    with pytest.raises(Misuse, match="owner"):
        await open_window(store, owner)


async def test_a_reflection_puts_its_evidence_into_the_archive(store: InMemoryStore) -> None:
    stream = await open_window(store)
    first, second, third = seen("aaa", 1), seen("aab", 2), seen("abb", 3)
    low = insight("bba", first, second, created=4)
    high = insight("bbb", low, third, created=5)
    await stream.add([first, second, third])
    await stream.add([low, high])
    for view in (stream, await open_window(store)):
        assert texts(await view.latest(10)) == ["bba", "bbb"]
        assert texts(await view.retrieve("a", k=10, now=9, ranking=Paper(), renew=False)) == ["bbb", "bba"]
        assert set(texts(await view.evidence(high["id"]))) == {"bba", "abb", "aaa", "aab"}
        assert texts(await view.derived(first["id"])) == ["bba", "bbb"]
        assert [memory["archived"] for memory in await view.get([first["id"], low["id"]])] == [True, False]


async def test_plans_are_no_reflections_and_archive_nothing(store: InMemoryStore) -> None:
    stream = await open_window(store)
    day = seen("day", 1, kind="plan")
    await stream.add([day, seen("hour", 2, kind="plan", evidence=[day["id"]]), seen("saw", 3)])
    assert texts(await stream.latest(10, kinds=["plan"])) == ["day", "hour"]
    assert texts(await stream.latest(1)) == ["saw"]
    assert texts(await stream.derived(day["id"])) == ["hour"]


async def test_deleting_tells_what_was_derived_and_frees_the_evidence(store: InMemoryStore) -> None:
    stream, other = await open_window(store), await open_window(store)
    leaf, rest = seen("aaa", 1), seen("bbb", 2)
    low = insight("aab", leaf, rest, created=3)
    high = insight("abb", low, created=4)
    await stream.add([leaf, rest, low, high])
    assert texts(await stream.delete(leaf["id"])) == ["aab", "abb"]
    assert await stream.delete(leaf["id"]) == [low, high]
    for view in (stream, other):
        assert texts(await view.evidence(high["id"])) == ["aab", "bbb"]
    assert texts(await other.delete(low["id"])) == ["abb"]
    for view in (stream, other):
        assert texts(await view.latest(9)) == ["bbb", "abb"]
        assert await view.evidence(high["id"]) == []


async def test_the_size_is_bounded_and_evidence_never_goes_first(store: InMemoryStore) -> None:
    stream = await open_window(store, max_memories=4)
    leaf = seen("leaf", 0, 1)
    await stream.add([leaf, insight("top", leaf, created=HOUR, importance=2), seen("dull", 2 * HOUR, 1)])
    added = await stream.add([seen("grave", 3 * HOUR, 9), seen("fresh", 4 * HOUR, 1)])
    assert (len(added.added), texts([memory async for memory in stream.everything()])) == (
        2,
        ["leaf", "dull", "grave", "fresh"],
    )
    assert added.forgotten == [memory_id("top")]
    assert (await stream.add([seen("newer", 5 * HOUR, 1)])).forgotten == [leaf["id"]]
    assert await (await open_window(store)).count() == 4


facts = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 10), st.sets(st.integers(0, 11), max_size=3)), max_size=12)


@given(facts, st.integers(1, 12))
def test_forgetting_leaves_no_reflection_without_evidence(rows: list[Any], limit: int) -> None:
    index, ids = Index(), [f"{number:032x}" for number in range(len(rows))]
    made = [
        Entry(
            ids[number],
            "reflection" if below else "observation",
            float(at),
            importance,
            tuple(ids[index_below] for index_below in below if index_below < number),
        )
        for number, (at, importance, below) in enumerate(rows)
    ]
    index.add(made, np.ones((len(made), 2), np.float32))
    gone = set(index.trim(limit))
    assert len(index) == min(limit, len(rows)) == len(rows) - len(gone)
    assert not [memory for memory in made if memory.id not in gone and gone & set(memory.evidence)]


async def test_a_memory_is_never_larger_than_its_bound(store: InMemoryStore) -> None:
    with pytest.raises(Misuse, match="max_memories"):
        await open_window(store, max_memories=0)
    stream = await open_window(store, max_memories=3)
    change = await stream.add([seen(f"a{number}", number) for number in range(1203)])
    assert (len(change.added), len(change.forgotten)) == (1203, 1200)
    assert texts(await stream.latest(5)) == ["a1200", "a1201", "a1202"]
    assert len([key for key in items(store) if key[2] in ("text", "index")]) == 6


async def test_a_smaller_bound_is_reached_in_several_steps(
    store: InMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reflective_agents.memory.stream.AT_ONCE_DELETED", 10)
    await (await open_window(store)).add([seen(f"a{number}", number) for number in range(35)])
    smaller = await open_window(store, max_memories=2)
    assert len((await smaller.add([seen("b", 100)])).forgotten) == 34
    assert texts(await smaller.latest(9)) == ["a34", "b"]
    await smaller.forget_all()
    assert items(store) == {}


async def test_what_is_pending_counts_observations_after_the_last_reflection(store: InMemoryStore) -> None:
    stream = await open_window(store)
    assert await stream.pending() == (0, BEGINNING)
    first, last = seen("aaa", 1, 4), seen("bbb", 2, 3)
    await stream.add([last, first, seen("ccc", 3, 8, kind="plan")])
    pending = await stream.pending()
    assert pending == (7, Mark(2, last["id"]))
    await stream.add([insight("top", first)], reflected=pending.latest)
    for view in (stream, await open_window(store)):
        assert await view.pending() == (0, pending.latest)
        assert await view.reflected() == pending.latest
    await stream.add([seen("late", 5, 2)], reflected=Mark(1, first["id"]))
    assert (await stream.pending()).importance == 2


async def test_each_process_sees_what_the_others_write(store: InMemoryStore) -> None:
    first, second = await open_window(store), await open_window(store)
    await first.add([seen("aaa", 1, 6)])
    await second.add([seen("bbb", 2, 6)])
    assert texts(await first.latest(9)) == texts(await second.latest(9)) == ["aaa", "bbb"]
    await second.add([insight("top", seen("aaa"))], reflected=(await second.pending()).latest)
    assert (await first.pending()).importance == 0
    await first.delete(memory_id("bbb"))
    assert texts(await second.latest(9)) == ["top"]
    await first.forget_all()
    assert await second.count() == 0
    await first.add([seen("ccc")])
    assert texts(await second.latest(9)) == ["ccc"]


async def test_who_is_far_behind_reads_the_index_anew(store: InMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = await open_window(store), await open_window(store)
    for number in range(3):
        await first.add([seen(f"a{number} {index}", number) for index in range(300)])
    await first.delete(memory_id("a0 7"))
    assert await second.count() == 899
    assert [memory async for memory in second.everything()] == [memory async for memory in first.everything()]


async def test_heads_of_processes_that_are_gone_are_cleared_away(store: InMemoryStore) -> None:
    witness = await open_window(store)
    for number in range(replica.MOST_HEADS + 5):
        await (await open_window(store)).add([seen(f"a{number}", number)])
    assert len([key for key in items(store) if key[2] == "head"]) < replica.MOST_HEADS
    assert await witness.count() == replica.MOST_HEADS + 5


async def test_only_the_texts_that_are_returned_are_read(store: InMemoryStore) -> None:
    await (await open_window(store)).add([seen(f"a{number}", number) for number in range(50)])
    window = Window(store)
    stream = await MemoryStream.open(window, "anna", Letters())
    await stream.retrieve("a", k=3, now=9)
    assert {namespace[2] for namespace in window.searched} == {"index", "access", "mark", "about", "head"}


async def test_a_retrieval_takes_three_requests_and_shows_memories_as_they_were_before_it(store: InMemoryStore) -> None:
    await (await open_window(store)).add([seen(f"a{number}", number) for number in range(9)])
    window = Window(store)
    stream = await MemoryStream.open(window, "anna", Letters())
    before = window.requests
    found = await stream.retrieve("a", k=3, now=20)
    assert window.requests == before + 3
    assert [scored.memory["accessed"] for scored in found] == [scored.memory["created"] for scored in found]
    assert [memory["accessed"] for memory in await stream.get([scored.memory["id"] for scored in found])] == [20] * 3
    assert [scored.memory["accessed"] for scored in await stream.retrieve("a", k=3, now=20)] == [20] * 3


async def test_several_queries_take_three_requests_and_find_what_each_finds_alone(store: InMemoryStore) -> None:
    await (await open_window(store)).add(
        [seen(text, number) for number, text in enumerate(["abc", "abd", "bcd", "cde"])]
    )
    window = Window(store)
    stream = await MemoryStream.open(window, "anna", Letters())
    queries: list[Query] = ["a", Letters().embed_query("e"), "a", "cd"]
    alone = [await stream.retrieve(query, k=2, now=20, renew=False) for query in queries]
    before = window.requests
    assert await stream.retrieve_each(queries, k=2, now=20) == alone
    assert window.requests == before + 3
    assert await stream.retrieve_each([], k=2, now=20) == []


@pytest.mark.parametrize("fails", ["before", "after"])
async def test_a_write_that_fails_is_all_or_nothing_and_no_view_is_wrong(store: InMemoryStore, fails: str) -> None:
    window = Window(store)
    broken, other = await MemoryStream.open(window, "anna", Letters()), await open_window(store)
    await broken.add([seen("aaa", 1)])
    window.fails = fails
    with pytest.raises(ConnectionError):
        await broken.add([seen("bbb", 2), insight("top", seen("aaa"), created=3)])
    window.fails = ""
    expected = ["aaa"] if fails == "before" else ["bbb", "top"]
    assert texts(await broken.latest(9)) == texts(await other.latest(9)) == expected
    await broken.add([seen("bbb", 2), insight("top", seen("aaa"), created=3)])
    assert texts(await broken.latest(9)) == texts(await other.latest(9)) == ["bbb", "top"]


async def test_agents_of_one_process_may_use_a_memory_at_once(store: InMemoryStore) -> None:
    stream = await MemoryStream.open(store, "anna", Letters())
    again = await MemoryStream.open(store, "anna", Letters())

    async def live(number: int) -> None:
        await (stream, again)[number % 2].add([seen(f"a{number}", number)])
        await stream.retrieve("a", k=5, now=100)

    await asyncio.gather(*(live(number) for number in range(40)))
    assert await stream.count() == await (await open_window(store)).count() == 40


def test_a_memory_is_at_home_in_any_loop(store: InMemoryStore) -> None:
    async def live(text: str) -> int:
        stream = await MemoryStream.open(store, "anna", Letters())
        await asyncio.gather(stream.add([seen(text)]), stream.count())
        return await stream.count()

    assert [asyncio.run(live(text)) for text in ("aaa", "bbb", "ccc")] == [1, 2, 3]


async def test_other_embeddings_are_refused(store: InMemoryStore) -> None:
    await (await open_window(store)).add([seen("aaa")])
    with pytest.raises(Misuse, match="made with the embeddings 'letters', not 'lexical'"):
        await MemoryStream.open(store, "anna", "lexical")
    await MemoryStream.open(store, "bob", "lexical")


class Failing(Letters):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise ConnectionError("the server is away")


class Short(Letters):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 2.0] for _ in texts]


async def test_without_vectors_nothing_is_added(store: InMemoryStore) -> None:
    stream = await MemoryStream.open(store, "anna", Failing())
    with pytest.raises(ModelFailed, match="letters failed: the server is away"):
        await stream.add([seen("aaa")])
    assert items(store) == {}
    await (await open_window(store)).add([seen("aaa")])
    with pytest.raises(Misuse, match="2 numbers"):
        await (await MemoryStream.open(Window(store), "anna", Short())).add([seen("bbb")])
    assert await stream.count() == 1


async def test_requests_for_vectors_count_as_calls_of_the_run(store: InMemoryStore) -> None:
    meter = Meter(Context(max_model_calls=2), NOTHING_SPENT)
    stream = await open_window(store, meter=meter)
    await stream.add([seen("aaa"), seen("bbb")])
    await stream.retrieve("a", k=1, now=0)
    assert meter.usage["model_calls"] == 2
    with pytest.raises(LimitReached, match="max_model_calls=2"):
        await stream.retrieve("b", k=1, now=0)
    embedded = await MemoryStream.open(store, "bob", "lexical", meter=meter)
    await embedded.add([seen("aaa")])
    assert len(await embedded.retrieve("a", k=1, now=0)) == 1


class Elsewhere(Embeddings):
    """Embeddings that block, and must therefore never be called in the event loop."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return [[1.0] for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


async def test_vectors_are_made_outside_the_event_loop(store: InMemoryStore) -> None:
    stream = await MemoryStream.open(store, "anna", Elsewhere())
    await stream.add([seen("aaa")])
    assert len(await stream.retrieve("a", k=1, now=0)) == 1


@pytest.mark.thorough
@settings(max_examples=25, deadline=None)
@given(st.permutations(["aab", "aab c", "abb", "abb c", "bba", "aab d"]))
def test_the_order_of_insertion_does_not_matter(order: list[str]) -> None:
    async def found() -> list[Scored]:
        stream = await open_window(InMemoryStore())
        for text in order:
            await stream.add([seen(text, created=float(len(text)), importance=3)])
        return await stream.retrieve("a b", k=6, now=HOUR)

    async def expected() -> list[Scored]:
        stream = await open_window(InMemoryStore())
        await stream.add([seen(text, created=float(len(text)), importance=3) for text in sorted(order)])
        return await stream.retrieve("a b", k=6, now=HOUR)

    assert asyncio.run(found()) == asyncio.run(expected())


class Gated(Letters):
    """Embeddings that wait before they answer, once they are told to."""

    def __init__(self) -> None:
        self.begun, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        self.begun.set()
        await self.may_answer.wait()
        return self.embed_documents(texts)


async def test_a_memory_that_is_deleted_while_it_is_edited_stays_away(store: InMemoryStore) -> None:
    embeddings, memory = Gated(), seen("aaa")
    stream = await MemoryStream.open(Window(store), "anna", embeddings)
    await stream.add([memory])
    embeddings.begun.clear()
    embeddings.may_answer.clear()
    editing = asyncio.create_task(stream.edit(memory["id"], "bbb"))
    await embeddings.begun.wait()
    await stream.delete(memory["id"])
    embeddings.may_answer.set()
    with pytest.raises(Misuse, match="there is no memory"):
        await editing
    assert await stream.get([memory["id"]]) == []
    assert await (await open_window(store)).get([memory["id"]]) == []
