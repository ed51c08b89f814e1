"""What recency gains: of two statements about the same, the later must rank first. Made by rule, with a fixed seed.

Somebody tells where others live, work, and so on, over a year; each of it changes once, and is told again in the same
words or in other ones. Nothing says that one statement supersedes the other. Which of two wordings comes first is
drawn, so that without recency about as many of the later statements win as lose. Questions are asked at the end.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from bench.later_words import CHATTER, LANGUAGES
from bench.resampling import interval
from reflective_agents.memory.rankings.base import Ranking
from reflective_agents.memory.rankings.hybrid import RANKING as HYBRID
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.state.memories import Memory, new_memory

DAY = 86_400.0
START = 1_777_800_000.0
"""A day in May 2026."""
SAID, ASKED = 365, 30
"""Days in which the earlier statements are made, and days from the last that may be said to the questions."""
APART = {"two weeks": 14, "two months": 61, "half a year": 183}
"""Days from the earlier statement to the later one."""
ROUNDS = 3
"""Memories of each language, with other values, wordings and days."""
WEIGHTS = (0.0, HYBRID.recency, 4 * HYBRID.recency)
WORDINGS = ("same words", "other words")


class Pair(NamedTuple):
    """A question, whose it is, and the statements that answer it: what was so, and what is so."""

    group: str
    question: str
    earlier: Memory
    later: Memory


def pairs(language: str, apart: int, wording: str, number: int = 0) -> Iterator[Pair]:
    """Make the pairs of a memory: one of each subject and topic, each statement in a conversation of its own."""
    chance = random.Random(f"{language} {apart} {wording} {number}")
    subjects, topics = LANGUAGES[language]
    for who, topic in product(subjects, topics):
        wordings = [chance.choice(topic.wordings)] * 2
        if wording == "other words":
            wordings = chance.sample(topic.wordings, 2)
        values = chance.sample(topic.values, 2)
        at = START + chance.uniform(0, SAID) * DAY
        made: list[Memory] = []
        for nth, (form, value) in enumerate(zip(wordings, values, strict=True)):
            text = form.format(who=who, value=value)
            made.append(_turn(text, at + nth * apart * DAY, f"{who} {topic.question} {nth}"))
        yield Pair(f"{language} {who}", topic.question.format(who=who), *made)


def _turn(text: str, at: float, key: str) -> Memory:
    return new_memory(text, created=at, importance=5, key=key, speaker="user", conversation=key)


async def wins(embeddings: Embeddings, apart: int, wording: str, rounds: int) -> dict[float, dict[str, list[float]]]:
    """Tell for each weight of recency, by group, for which pairs the later statement ranks above the earlier one."""
    found: dict[float, dict[str, list[float]]] = {weight: {} for weight in WEIGHTS}
    for language, number in product(LANGUAGES, range(rounds)):
        made = list(pairs(language, apart, wording, number))
        stream = await MemoryStream.open(InMemoryStore(), language, embeddings)
        chatter = [_turn(text, START + n * 7 * DAY, f"chatter {n}") for n, text in enumerate(CHATTER[language] * 9)]
        await stream.add([*chain.from_iterable((pair.earlier, pair.later) for pair in made), *chatter])
        for weight, pair in product(WEIGHTS, made):
            ranking, now = replace(HYBRID, recency=weight), START + (SAID + apart + ASKED) * DAY
            won = await _later_first(stream, pair, ranking, now)
            found[weight].setdefault(pair.group, []).append(won)
    return found


async def _later_first(stream: MemoryStream, pair: Pair, ranking: Ranking, now: float) -> float:
    scored = await stream.retrieve(pair.question, k=await stream.count(), now=now, ranking=ranking, renew=False)
    order = [match.memory["id"] for match in scored]
    return float(order.index(pair.later["id"]) < order.index(pair.earlier["id"]))


async def later_table(systems: Mapping[str, Embeddings], distances: Sequence[str], rounds: int) -> Sequence[str]:
    """Format the table of some distances: how often the later statement comes first, in %, with 95 % intervals."""
    weights = " | ".join(f"recency {weight:g}" for weight in WEIGHTS)
    table = [f"| | {weights} | pairs |", "|---|" + "---:|" * (len(WEIGHTS) + 1)]
    for name, embeddings in systems.items():
        for distance, wording in product(distances, WORDINGS):
            found = await wins(embeddings, APART[distance], wording, rounds)
            groups = [[np.array(group) for group in found[weight].values()] for weight in WEIGHTS]
            cells = " | ".join(_cell(group) for group in groups)
            table.append(f"| {name}, {distance} apart, {wording} | {cells} | {sum(map(len, groups[0]))} |")
    return table


def _cell(groups: Sequence[NDArray[np.float64]]) -> str:
    low, high = interval(groups)
    return f"{100 * np.concatenate(groups).mean():.0f} ({100 * low:.0f} to {100 * high:.0f})"
