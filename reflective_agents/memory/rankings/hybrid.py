"""How well memories fit a query by meaning and by words, by what was said around them, by whom, and when.

The sum of the scaled cosine and the scaled BM25, each also of the turn with its neighbours, at a lower weight; then
what speaks for the conversation as a whole, for a turn of some substance, for a speaker whose name the query has, and
for a date it names.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reflective_agents.memory.postings import Postings, Rows
from reflective_agents.memory.rankings.base import Memories, MemoryQuery, Ranking
from reflective_agents.memory.scoring import Floats, lateness, normalise
from reflective_agents.memory.timeline import Timeline
from reflective_agents.text.bm25 import idf, saturated
from reflective_agents.text.words import words

NEAR = 0.7
"""Weight of a turn together with its neighbours, beside the turn itself."""
SESSION, SPEAKER, PERIOD = 1.2, 0.4, 0.5
"""Weights of the best that was said in the same session, of the speaker named, and of the time named."""
SUBSTANCE = 0.4
"""Weight of how much there is in a turn: "Sounds great!" answers nothing."""
BEFORE, AFTER, AROUND = 3 * 86400.0, 10 * 86400.0, 0.6
"""Seconds before and after a period in which it is talked about, too, and what that counts beside the period itself."""
COMMON_WORD = 16
"""A word that more than one memory of so many holds is counted in all memories at once, which is then faster."""


@dataclass(frozen=True)
class Hybrid(Ranking):
    """Finds most of what was said long ago, and of two statements that fit alike the later one."""

    recency: float = 0.3
    importance: float = 0.6
    relevance: float = 3.0
    lower: ClassVar[float] = 0.9

    async def terms(self, query: MemoryQuery, memories: Memories, now: float) -> tuple[Rows, list[Floats]]:
        """Return the rows in the order of time, and their lateness, importance and fit in every respect.

        Words and vectors are compared at once.
        """
        line = memories.line
        cosines, (alone, near) = await asyncio.gather(
            memories.cosines(query.vector), asyncio.to_thread(bm25, line, memories.postings, query.stems)
        )
        fitting = fit(line, cosines[line.order], alone, near, query.meaning)
        fitting += SUBSTANCE * line.substance
        for name, number in memories.speakers.items():
            if name and set(words(name)) <= query.words:
                fitting += SPEAKER * (memories.column("speaker")[line.order] == number)
        if query.periods:
            fitting += PERIOD * within(query.periods, line.created)
        return line.order, [lateness(line.created, now), line.importance, fitting]


RANKING = Hybrid()


def bm25(line: Timeline, postings: Postings, stems: frozenset[int]) -> tuple[Floats, Floats]:
    """Calculate BM25 of each memory, and of each together with its neighbours, in order of time."""
    total = len(line.order)
    alone, near, counts = (np.zeros(total, np.float32) for _ in range(3))
    postings_of = [postings.holding(stem) for stem in sorted(stems)]
    # What most memories hold counts next to nothing, and takes the longest: it is left to queries of nothing else.
    rare = [posting for posting in postings_of if 2 * len(posting[0]) < total]
    for rows, occurrences in rare or postings_of:
        positions = line.positions[rows]
        if len(line.positions) > total:
            positions, occurrences = positions[positions >= 0], occurrences[positions >= 0]
        counts[positions] = occurrences
        if COMMON_WORD * len(positions) > total:
            around = line.around(counts)
            alone += saturated(counts, line.damping[0], idf(len(positions), total))
            near += saturated(around, line.damping[1], idf(int(np.count_nonzero(around > 0)), total))
        else:
            reach = line.reach(positions)
            alone[positions] += saturated(occurrences, line.damping[0][positions], idf(len(positions), total))
            near[reach] += saturated(line.near(counts, reach), line.damping[1][reach], idf(len(reach), total))
        counts[positions] = 0.0
    return alone, near


def fit(line: Timeline, cosines: Floats, alone: Floats, near: Floats, meaning: float) -> Floats:
    """Score how well each memory fits by meaning and words, with its neighbours and its session, in order of time."""
    fitting = normalise(alone)
    fitting += NEAR * normalise(near)
    if meaning:
        fitting += meaning * normalise(cosines)
        fitting += meaning * NEAR * normalise(line.around(cosines))
    fitting += np.repeat(SESSION * normalise(line.by_session(fitting)), line.sizes)
    return fitting


def within(periods: Sequence[tuple[float, float]], created: Floats) -> Floats:
    """Score how well the time of each memory fits one of these periods, in 0..1."""
    fits = np.zeros(len(created), np.float32)
    for start, end in periods:
        inside = (start <= created) & (created < end)
        around = (start - BEFORE <= created) & (created < end + AFTER)
        fits = np.maximum(fits, np.where(inside, np.float32(1), np.float32(AROUND) * around))
    return fits
