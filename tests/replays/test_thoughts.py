"""The replays of Tree of Thoughts follow any log of the published programs, such as these make up at random."""

import random
from typing import Any

import pytest

from bench.replays import ballots, beams, puzzles
from bench.replays.records import Record
from bench.replays.thoughts import Key, Model, marked, unmarked
from reflective_agents.environments.crosswords import CLUES, words

LABELS = {"impossible": 0.001, "likely": 1, "sure": 20}


def a_beam_log(seed: int) -> Record:
    """A log of the published breadth-first search, with lines that are empty, padded, or there twice."""
    chance = random.Random(seed)
    outputs: list[Record] = []
    selected: list[list[str]] = []
    level = [""]
    for step in range(beams.STEPS):
        found: list[str] = []
        for state in level:
            text = "\n".join(chance.choices(["1 + 1 = 2", "x", "", " y", "Answer: 2"], k=chance.randint(1, 4)))
            outputs.append({"role": "propose", "step": step, "state": state, "text": text})
            found += [f"{state}{line}\n" for line in text.split("\n")]
        values: list[float] = []
        for index, state in enumerate(found):
            samples = chance.choices([*LABELS, "?"], k=3)
            repeated = state in found[:index]
            values.append(0 if repeated else sum(worth * samples.count(label) for label, worth in LABELS.items()))
            if not repeated:
                outputs.append({"role": "value", "step": step, "state": state, "samples": samples})
        best = sorted(range(len(found)), key=lambda index: values[index], reverse=True)
        level = [found[index] for index in best[: beams.WIDTH]]
        selected.append(level)
    return {"id": f"game/{seed}", "task": {"input": "1 1 1 1"}, "outputs": outputs, "selected": selected}


@pytest.mark.thorough
async def test_any_beam_is_followed() -> None:
    records = [a_beam_log(seed) for seed in range(12)]
    assert any(len(set(level)) < len(level) for record in records for level in record["selected"])
    models = [beams.beam_model(record) for record in records]
    results = await beams.search(records, models, beams.WIDTH)
    assert [beams.beams(result) for result in results] == [record["selected"] for record in records]
    assert [model.misses + model.unserved for model in models] == [[]] * len(records)


def a_puzzle_log(seed: int) -> Record:
    """A log of the published depth-first search."""
    chance = random.Random(seed)
    start, letters = ("_" * 25, "0" * 10), "ab"
    outputs: list[Record] = []
    proposed: dict[str, list[list[Any]]] = {}
    counted: dict[str, dict[str, int]] = {}
    visited: list[list[str]] = []

    def visit(board: str, status: str, actions: list[str]) -> None:
        state = f"{board}|{status}"
        if state not in proposed:
            chosen = {f"{clue}. {''.join(chance.choices(letters, k=5))}" for clue in chance.choices(CLUES, k=6)}
            proposed[state] = [[action, chance.choice([0.1, 0.3, 1, 1.7])] for action in sorted(chosen)]
            outputs.append({"role": "propose", "state": state, "candidates": proposed[state]})
        tried = 0
        for action, _ in sorted(proposed[state], key=lambda candidate: -candidate[1]):
            after, now = enter(board, status, action)
            if len(visited) >= puzzles.MOST or len(actions) >= puzzles.DEPTH or "2" in now:
                continue
            tried += 1
            if tried > puzzles.CHILDREN:
                break
            new = f"{after}|{now}"
            count = counted.setdefault(new, {"sure": 1, "maybe": chance.randint(0, 1), "impossible": seed % 2})
            visited.append([*actions, action])
            outputs.append({"role": "value", "state": new, "actions": visited[-1], "count": count})
            if not count["impossible"]:
                visit(after, now, visited[-1])

    visit(*start, [])
    return {"id": f"puzzle/{seed}", "task": {"clues": ["?"] * 10, "board_gt": "A" * 25}, "outputs": outputs}


def enter(board: str, status: str, action: str) -> tuple[str, str]:
    """Board and status after a word, whatever it overwrites."""
    clue, word = action.split(". ")
    number, squares = CLUES.index(clue), list(board)
    cells = slice(number * 5, number * 5 + 5) if number < 5 else slice(number - 5, None, 5)
    squares[cells] = word.upper()
    pairs = zip(words(board), words(squares), status, strict=True)
    digits = [
        "2" if any(a not in ("_", b) for a, b in zip(old, new, strict=True)) else digit for old, new, digit in pairs
    ]
    digits[number] = "1"
    return "".join(squares), "".join(digits)


@pytest.mark.thorough
async def test_any_visits_are_followed() -> None:
    records = [a_puzzle_log(seed) for seed in range(4)]
    models = [puzzles.puzzle_model(puzzles.Proposed(record))[0] for record in records]
    results = await puzzles.search([puzzles.puzzle_of(record) for record in records], models)
    for record, result in zip(records, results, strict=True):
        assert [puzzles.actions(result, node) for node in puzzles.visits(result)] == puzzles.logged(record)
    assert max(len(puzzles.logged(record)) for record in records) == puzzles.MOST
    assert [model.misses + model.unserved for model in models] == [[]] * len(records)


@pytest.mark.parametrize("line", ["4 + 5 = 9", "", " 4", "x\n"])
@pytest.mark.parametrize("again", [0, 1, 2])
def test_marks_are_taken_off_again(line: str, again: int) -> None:
    assert unmarked(marked(line, again)) == (line, again > 0)
    assert marked(line, again).strip()
    assert len({marked(line, times) for times in range(3)}) == 3


def test_where_the_log_ends_nothing_is_proposed_and_that_is_remembered() -> None:
    model = beams.Sparse()
    assert model.take(Key("propose", "far away")) == beams.NOTHING
    assert model.misses == [Key("propose", "far away")]
    with pytest.raises(LookupError):
        model.take(Key("value", "far away"))
    with pytest.raises(LookupError):
        Model().take(Key("propose", "far away"))


def test_a_sum_of_confidences_is_made_up_of_words() -> None:
    lines = puzzles.listed([("h1. apple", 2.8), ("v1. angle", 0.1)]).split("\n")
    words_said = ["certain", "certain", "high", "medium", "low"]
    assert lines == [*(f"h1. apple ({word})" for word in words_said), "v1. angle (low)"]


def test_equal_texts_of_a_record_are_told_apart() -> None:
    outputs = [{"role": "sample", "step": step, "text": text} for step in (0, 1) for text in ("a  plan", "a plan", "b")]
    plans, passages = ballots.samples({"outputs": outputs})
    assert plans == passages == ["a  plan", marked("a plan", 1), "b"]
