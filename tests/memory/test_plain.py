"""The hybrid ranking beside the same worked out with plain loops, memory by memory."""

import math
import random
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from reflective_agents.memory.rankings import hybrid
from reflective_agents.memory.stream import MemoryStream, indexed
from reflective_agents.memory.timeline import GAP, QUESTION, TOP_TURNS, TURNS_A_SESSION
from reflective_agents.models.embeddings import meaning_of
from reflective_agents.models.lexical import LexicalEmbeddings
from reflective_agents.state.memories import Kind, Memory, new_memory
from reflective_agents.text.bm25 import damping, idf, saturated
from reflective_agents.text.dates import periods
from reflective_agents.text.stems import query_stems, stems
from reflective_agents.text.words import words
from tests.memory.windows import Letters

NOW = datetime(2026, 8, 3, tzinfo=UTC).timestamp()
DAY = 86_400.0
WORDS = ["bees", "honey", "tram", "ticket", "figs", "jam", "orchard", "opera", "boat", "paint", "the"]
QUERIES = [
    "Who keeps bees and honey?",
    "What did Ada paint last May?",
    "the tram",
    "Zephyrine",
    "boats, figs or an opera",
]


def memories() -> list[Memory]:
    """Turns of two speakers in some conversations, begun anew after hours, facts, and an insight on some of them."""
    chance, at, made = random.Random(7), NOW - 120 * DAY, list[Memory]()
    for number in range(220):
        at += chance.choice([60.0, 60.0, 60.0, 2 * 3600.0, DAY])
        text = " ".join(chance.choices(WORDS, weights=range(1, len(WORDS) + 1), k=chance.randint(1, 12)))
        text = f"{text} {number}{chance.choice('.?!')}"
        kind: Kind = "fact" if number % 11 == 0 else "observation"
        observed = new_memory(
            text,
            created=at,
            kind=kind,
            importance=chance.randint(1, 10),
            key=text,
            speaker=chance.choice(["Ada", "Bob"]),
            conversation=f"c{number // 20}",
            supersedes=[made[-11]["id"]] if number % 44 == 22 else [],
        )
        made.append(observed)
    insight = new_memory("Ada likes boats.", created=at, kind="reflection", evidence=[made[3]["id"], made[4]["id"]])
    return [*made, insight]


def scaled(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [(value - low) / (high - low) if high > low else 0.5 for value in values]


def plus(*columns: Sequence[float]) -> list[float]:
    return [sum(row) for row in zip(*columns, strict=True)]


def times(weight: float, values: Sequence[float]) -> list[float]:
    return [weight * value for value in values]


def in_bytes(vector: Sequence[float]) -> tuple[list[int], float]:
    scale = np.abs(np.asarray(vector, np.float32)).max() / np.float32(127)
    return [round(np.float32(number) / scale) if scale else 0 for number in vector], float(scale)


def unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [number / length if length else 0.0 for number in vector]


def plain(query: str, given: Sequence[Memory], by: Embeddings) -> dict[str, float]:
    """Score each memory, by its id."""
    turns = sorted(
        (each for each in given if each["kind"] == "observation"), key=lambda each: (each["created"], each["id"])
    )
    line = [*turns, *(each for each in given if each["kind"] != "observation")]
    sessions = list[list[int]]()
    for position, each in enumerate(line):
        before = line[position - 1] if 0 < position < len(turns) else None
        follows = before and each["created"] - before["created"] <= GAP
        if before and follows and each.get("conversation") == before.get("conversation"):
            sessions[-1].append(position)
        else:
            sessions.append([position])
    session_of = {position: session for session in sessions for position in session}

    def around(values: Sequence[float]) -> list[float]:
        return [
            sum(values[at] for at in session_of[position] if abs(at - position) <= 1) for position in range(len(line))
        ]

    counted = stems([indexed(each) for each in line])
    lengths = [float(sum(words_of.values())) for words_of in counted]
    alone, near = [0.0] * len(line), [0.0] * len(line)
    holding = {stem: sum(stem in words_of for words_of in counted) for stem in query_stems(query)}
    rare = [stem for stem, count in holding.items() if 2 * count < len(line)] or [*holding]
    for stem in rare:
        counts = [float(words_of[stem]) for words_of in counted]
        for total, values, sizes in ((alone, counts, lengths), (near, around(counts), around(lengths))):
            weight, mean = idf(sum(map(bool, values)), len(line)), sum(sizes) / len(sizes)
            for position, value in enumerate(values):
                total[position] += saturated(value, damping(sizes[position], mean), weight)
    query_vector, scale = in_bytes(unit(by.embed_documents([query])[0]))
    stored = [
        np.asarray(unit(vector), np.float16).tolist() for vector in by.embed_documents([indexed(each) for each in line])
    ]
    vectors = [in_bytes(vector) for vector in stored]
    cosines = [int(np.dot(vector, query_vector)) * other * scale for vector, other in vectors]
    meaning = meaning_of(by)
    fitting = plus(scaled(alone), times(hybrid.NEAR, scaled(near)), times(meaning, scaled(cosines)))
    fitting = plus(fitting, times(meaning * hybrid.NEAR, scaled(around(cosines))))
    lowest = sorted(fitting, reverse=True)[:TOP_TURNS][-1]
    means = [
        sum(
            sorted((fitting[position] for position in session if fitting[position] >= lowest), reverse=True)[
                :TURNS_A_SESSION
            ]
        )
        / min(len(session), TURNS_A_SESSION)
        for session in sessions
    ]
    by_session = {position: mean for session, mean in zip(sessions, scaled(means), strict=True) for position in session}
    substance = scaled([math.log1p(length) for length in lengths[: len(turns)]])
    substance = [value - QUESTION * each["text"].endswith("?") for value, each in zip(substance, turns, strict=True)]
    substance += [1.0] * (len(line) - len(turns))
    for position, each in enumerate(line):
        fitting[position] += hybrid.SESSION * by_session[position] + hybrid.SUBSTANCE * substance[position]
        named = each.get("speaker") and set(words(each["speaker"])) <= set(words(query))
        fitting[position] += hybrid.SPEAKER if named else 0.0
        fitting[position] += hybrid.PERIOD * max(
            (fits(each["created"], *period) for period in periods(query, NOW)), default=0.0
        )
    late = scaled([-math.log1p((NOW - memory["created"]) / DAY) for memory in line])
    important = scaled([memory["importance"] for memory in line])
    scores = plus(times(0.3, late), times(0.6, important), times(3.0, scaled(fitting)))
    over = {below for memory in given for below in memory.get("supersedes", [])}
    over |= {below for memory in given if memory["kind"] == "reflection" for below in memory["evidence"]}
    return {
        memory["id"]: score / 3.9 * (0.9 if memory["id"] in over else 1.0)
        for memory, score in zip(line, scores, strict=True)
    }


def fits(created: float, start: float, end: float) -> float:
    if start <= created < end:
        return 1.0
    return hybrid.AROUND if start - hybrid.BEFORE <= created < end + hybrid.AFTER else 0.0


@pytest.mark.matrix
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("by", [LexicalEmbeddings(), Letters()])
async def test_the_ranking_is_that_of_plain_loops(query: str, by: Embeddings) -> None:
    given, store = memories(), InMemoryStore()
    late = given[150:]
    stream = await MemoryStream.open(store, "anna", by)
    for part in (given[:150][::-1], late):  # rows in another order than that of time, then some more
        await stream.add(part)
        expected = plain(query, [*given[:150], *(late if part is late else [])], by)
        found = await stream.retrieve(query, k=len(given), now=NOW, renew=False)
        assert {scored.memory["id"]: scored.score for scored in found} == pytest.approx(expected, abs=2e-4)
        best = sorted(expected, key=expected.__getitem__, reverse=True)
        for number, scored in enumerate(found):
            assert expected[scored.memory["id"]] == pytest.approx(expected[best[number]], abs=2e-4)
