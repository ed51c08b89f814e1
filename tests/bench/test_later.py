"""The measurement of what recency gains: fair by its making, and its table."""

from collections.abc import Sequence

import pytest

from bench import later
from bench.later import APART, WORDINGS, later_table, pairs
from bench.later_words import LANGUAGES
from reflective_agents.models.lexical import LexicalEmbeddings

MADE = [(language, apart, wording) for language in LANGUAGES for apart in APART.values() for wording in WORDINGS]


@pytest.mark.parametrize(("language", "apart", "wording"), MADE)
def test_of_each_topic_two_statements_with_different_values_are_made(language: str, apart: int, wording: str) -> None:
    made = list(pairs(language, apart, wording))
    assert made == list(pairs(language, apart, wording)), "by a seed"
    assert made != list(pairs(language, apart, wording, 1))
    assert {pair.later["created"] - pair.earlier["created"] for pair in made} == {apart * later.DAY}
    assert all(pair.earlier["text"] != pair.later["text"] for pair in made)
    subjects, topics = LANGUAGES[language]
    assert len(made) == len({pair.question for pair in made}) == len(subjects) * len(topics)


@pytest.mark.thorough
async def test_more_recency_lets_more_of_the_later_statements_win() -> None:
    table = await later_table({"lexical": LexicalEmbeddings()}, ["half a year"], rounds=1)
    same = cells(table[2])
    assert same[0] == "lexical, half a year apart, same words"
    assert same[-1] == "84"
    without, some, much = (int(cell.split()[0]) for cell in same[1:4])
    assert without < some <= much


def cells(row: str) -> Sequence[str]:
    return [cell.strip() for cell in row.strip("| ").split("|")]
