"""Facts first: what of a user's memories an answer is given, and in which order."""

import pytest
from langgraph.store.memory import InMemoryStore

from reflective_agents.graphs._memory.choosing import choose
from reflective_agents.memory.stream import MemoryStream, Scored
from reflective_agents.state.memories import Memory, Topic, new_memory
from reflective_agents.testing.script import Reply, Request
from tests.graphs.everyday import PEOPLE, Person
from tests.graphs.test_memory import Talk

FACT = {"about": "the user", "importance": 6}
HOME = "I live in Leeds with my daughter Mia."
MOVED = "We moved to York last week."
NUMBER = r'<memory number="(\d+)"'


def scored(text: str, importance: float = 5, relevance: float = 0.5, topic: Topic | None = None) -> Scored:
    memory = new_memory(text, created=0.0, kind="fact", importance=importance, topic=topic)
    return Scored(memory, relevance, 0.0, importance / 10, relevance)


def turn(text: str, speaker: str, importance: float = 1) -> Scored:
    return Scored(new_memory(text, created=0.0, importance=importance, speaker=speaker), 0.5, 0.0, 0.0, 0.5)


def chosen(ranked: list[Scored], most: int = 10, tokens: int = 4000, question: str = "Hm?") -> list[str]:
    return [scored.memory["text"] for scored in choose(ranked, question, most, tokens, set(), "here")]


def test_facts_come_before_turns_that_fit_better_and_chatter_comes_last() -> None:
    ranked = [
        turn("You're welcome!", "assistant"),
        turn("Thanks!", "user"),
        turn("I paint boats.", "user", importance=5),
        scored("The user eats no hazelnuts."),
    ]
    assert chosen(ranked) == ["The user eats no hazelnuts.", "I paint boats.", "You're welcome!", "Thanks!"]
    assert chosen(ranked, tokens=0) == [scored.memory["text"] for scored in ranked], "nothing comes first"


def test_one_turn_of_chatter_that_alone_has_a_word_of_the_question_is_none() -> None:
    ranked = [
        scored("The user reads in the evening."),
        turn("The library at the river opens at nine.", "assistant"),
        turn("Is there a library?", "user"),
        turn("I paint boats.", "user", importance=5),
    ]
    assert chosen(ranked, question="Which library?")[1:3] == [
        "The library at the river opens at nine.",
        "I paint boats.",
    ]
    assert chosen(ranked, question="What do I read?")[1] == "I paint boats."


def test_all_facts_are_shown_that_fit_and_a_third_is_left_for_the_rest() -> None:
    facts = [scored(f"Fact {number}.") for number in range(20)]
    turns = [turn(f"Turn {number}.", "user", importance=5) for number in range(20)]
    shown = chosen([*turns, *facts], most=9)
    assert (len([text for text in shown if text.startswith("Fact")]), len(shown)) == (20, 23)


def test_where_not_all_facts_fit_the_profile_comes_first_then_importance_and_fit() -> None:
    name = scored("The user's name is Ada.", importance=4, relevance=0.0, topic="name")
    grave = scored("The user saw a whale.", importance=10, relevance=0.1, topic="other")
    fitting = scored("The user likes trams.", importance=5, relevance=1.0, topic="other")
    neither = [scored(f"The user saw bird {number}.", 3, 0.1, "other") for number in range(50)]
    assert set(chosen([*neither, fitting, grave, name], most=1, tokens=160)) >= {
        "The user's name is Ada.",
        "The user saw a whale.",
        "The user likes trams.",
    }


@pytest.mark.parametrize(("since", "shown"), [("2026-11-16", True), ("", False)])
def test_a_fact_of_the_thread_is_shown_if_it_has_a_date(since: str, shown: bool) -> None:
    fact = new_memory("Ada moved.", created=0.0, kind="fact", conversation="here", since=since)
    assert bool(chosen([Scored(fact, 0.5, 0.5, 0.5, 0.5)])) is shown


# Through the graph


def keeper(request: Request) -> Reply:
    """A model that keeps two things of a home, and of a move what it leaves."""
    if request.schema == "Facts":
        if HOME in request.last:
            return {"facts": [{**FACT, "statement": "Paul lives in Leeds with his daughter Mia.", "topic": "home"}]}
        if MOVED in request.last:
            moved = {"statement": "Paul has lived in York since November 2026.", "topic": "home", "importance": 9}
            return {"facts": [{**FACT, **moved, "supersedes": [1], "remains": ["Mia is Paul's daughter."]}]}
        return {"facts": []}
    return "I see."


async def facts_of(talk: Talk) -> dict[str, Memory]:
    return {memory["text"]: memory for memory in await talk.all() if memory["kind"] == "fact"}


async def test_what_remains_of_a_fact_that_ended_in_part_is_a_fact_with_its_evidence() -> None:
    talk = Talk(keeper)
    await talk.say(HOME)
    await talk.say(MOVED)
    facts = await facts_of(talk)
    ended, rest = facts["Paul lives in Leeds with his daughter Mia."], facts["Mia is Paul's daughter."]
    assert ("until" in ended, "until" in rest) == (True, False)
    assert set(ended["evidence"]) < set(rest["evidence"])
    assert (rest["importance"], rest.get("topic")) == (ended["importance"], "home")
    out = await talk.say("Who is Mia?")
    assert "Mia is Paul's daughter." in [memory["text"] for memory in out["memories"]]


async def test_a_turn_that_only_repeats_a_known_fact_is_chatter() -> None:
    talk = Talk(keeper)
    await talk.say(HOME)
    await talk.say(f"As you know: {HOME}")
    importance = {
        memory["text"]: memory["importance"] for memory in await talk.all() if memory.get("speaker") == "user"
    }
    assert importance == {HOME: 6, f"As you know: {HOME}": 1}


async def test_what_is_said_anew_and_ends_something_is_not_lost_for_what_remains() -> None:
    def moving(request: Request) -> Reply:
        if request.schema and MOVED in request.last:
            rest = {**FACT, "statement": "Mia is Paul's daughter.", "supersedes": [1]}
            moved = {**FACT, "statement": "Paul lives in York.", "supersedes": [1], "remains": [rest["statement"]]}
            return {"facts": [moved, rest]}
        return keeper(request)

    talk = Talk(moving)
    await talk.say(HOME)
    await talk.say(MOVED)
    facts = await facts_of(talk)
    assert len(facts) == 3
    assert facts["Mia is Paul's daughter."]["supersedes"] == [facts["Paul lives in Leeds with his daughter Mia."]["id"]]


async def test_nothing_remains_of_a_fact_that_nothing_ended() -> None:
    def claims(request: Request) -> Reply:
        return {"facts": [{**FACT, "statement": "So.", "remains": ["Mia is six."]}]} if request.schema else "I see."

    talk = Talk(claims)
    await talk.say(HOME)
    assert [*await facts_of(talk)] == ["So."]


async def test_the_foremost_facts_are_found_whatever_fits_better() -> None:
    talk = Talk(keeper)
    stream: MemoryStream = await talk.stream()
    trams = [new_memory(f"A tram, number {number}.", created=number, importance=5) for number in range(40)]
    topics: list[Topic] = ["other", "diet", "name"]
    facts = [new_memory(f"Fact on {topic}.", created=0, kind="fact", topic=topic) for topic in topics]
    await stream.add([*trams, *facts])
    ranked = await stream.retrieve("trams", k=2, now=100.0, facts=2)
    assert sorted(scored.memory["text"] for scored in ranked[2:]) == ["Fact on diet.", "Fact on name."]
    assert [scored.score for scored in ranked] == sorted((scored.score for scored in ranked), reverse=True)
    assert [memory["topic"] for memory in await stream.facts(3)][-1] == "other"


# Everyday questions


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: person.facts[0][0])
async def test_what_matters_to_everyday_questions_is_shown_and_chatter_is_not(person: Person) -> None:
    facts = [new_memory(text, created=9.0, kind="fact", importance=weight) for text, weight in person.facts]
    turns = [
        new_memory(
            f"{text} {number}", created=float(number), speaker=("user", "assistant")[index % 2], conversation="a"
        )
        for number in range(5)
        for index, text in enumerate(person.chatter)
    ]
    stream = await MemoryStream.open(InMemoryStore(), "user", "lexical")
    await stream.add([*turns, *facts])
    for question, labels in person.questions.items():
        ranked = await stream.retrieve(question, k=30, now=99.0, renew=False, facts=200)
        shown = [scored.memory["text"] for scored in choose(ranked, question, 4, 4000, set(), "here")]
        assert {person.facts[label][0] for label in labels} <= set(shown), question
        assert len(shown) - len(facts) <= 2, question
