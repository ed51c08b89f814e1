"""Mini crosswords: by hand, for any words, and against the recorded runs."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflective_agents.environments.base import Task, Transition
from reflective_agents.environments.crosswords import CLUES, Crosswords, parse_entry, read_board, words
from reflective_agents.state.errors import Misuse

GOLD = "HEARTEMBERABUSERESINTREND"  # the same words across and down
TASK: Task = {"id": "1", "question": "", "gold": GOLD, "data": {"clues": [f"Clue {name}" for name in CLUES]}}
ROWS = ["h1. heart", "h2. ember", "h3. abuse", "h4. resin", "h5. trend"]


async def run(*actions: str, environment: Crosswords | None = None) -> Transition:
    environment = environment or Crosswords()
    transition = Transition(environment.start(TASK), "")
    for action in actions:
        transition = await environment.step(transition.state, action)
    return transition


async def test_words_across_and_down() -> None:
    entered = await run("h1. heart", "V2. Ember")
    assert entered.observation == "HEART\n_M___\n_B___\n_E___\n_R___"
    assert entered[2:] == (None, False, True)
    assert entered.state["status"] == [1, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    assert Crosswords().public(entered.state).splitlines()[:2] == ["h1. Clue h1: HEART", "h2. Clue h2: _M___"]


async def test_a_full_board_ends_the_task() -> None:
    end = await run(*ROWS)
    assert end[2:] == (1.0, True, True)
    assert Crosswords().score(TASK, Crosswords().answer(end.state)) == {"letter": 1.0, "word": 1.0, "game": 1.0}
    wrong = await run("h1. hoard", *ROWS[1:])
    assert (wrong.reward, wrong.done) == (0.7, True)
    assert Crosswords().score(TASK, Crosswords().answer(wrong.state)) == {"letter": 0.92, "word": 0.7, "game": 0.0}


async def test_a_full_board_takes_only_what_confirms_it() -> None:
    confirmed = await run(*ROWS, "v1. heart")
    assert confirmed[2:] == (1.0, True, True)
    other = await run(*ROWS, "v1. horse")
    assert (other.done, other.valid) == (True, False)


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("h2. heart", "HEART does not fit into _M___."),
        ("h1. heart", "h1 is entered already."),
        ("v2. embers", "The word must have 5 letters."),
        ("h6. heart", "No clue with its word can be read in this."),
        ("heart", "No clue with its word can be read in this."),
        ("h3. hear7", "No clue with its word can be read in this."),
    ],
)
async def test_what_is_wrong_is_refused_with_the_reason(action: str, why: str) -> None:
    before = await run("h1. heart", "v2. ember") if action != "v2. embers" else await run("h1. heart")
    refused = await Crosswords().step(before.state, action)
    assert refused.observation == why
    assert (refused.state, refused.reward, refused.done, refused.valid) == (before.state, None, False, False)


async def test_overwriting_can_be_allowed() -> None:
    environment = Crosswords(overwrite=True)
    changed = await run("h1. heart", "v1. tempo", environment=environment)
    assert changed.state["board"][:5] == "TEART"
    assert changed.state["status"] == [2, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    again = await environment.step(changed.state, "h1. heart")
    assert again.state["status"] == [1, 0, 0, 0, 0, 2, 0, 0, 0, 0]


def test_tasks_of_another_kind_are_refused() -> None:
    for task in ({**TASK, "data": {"clues": ["one"]}}, {**TASK, "gold": "short"}, {"id": "1", "question": ""}):
        with pytest.raises(Misuse, match="10 clues"):
            Crosswords().start(task)  # type: ignore[arg-type]


async def test_without_a_solution_there_is_no_reward() -> None:
    environment = Crosswords()
    task: Task = {"id": "1", "question": "", "data": TASK["data"]}
    transition = Transition(environment.start(task), "")
    for action in ROWS:
        transition = await environment.step(transition.state, action)
    assert (transition.reward, transition.done) == (None, True)
    assert environment.score(task, GOLD) == {}


def test_boards_are_read_as_they_are_written() -> None:
    assert read_board(GOLD.lower()) == GOLD
    assert read_board("Thoughts: h1\n\nOutput:\n" + "\n".join(" ".join(row) for row in words(GOLD)[:5])) == GOLD
    assert read_board("H E A R T S\nE M") == "HEARTEM" + "_" * 18
    assert read_board("") == "_" * 25


@given(st.text())
def test_every_text_is_a_board(text: str) -> None:
    score = Crosswords().score(TASK, text)
    assert all(0 <= figure <= 1 for figure in score.values())


def test_a_solution_that_is_too_short_is_not_scored_in_part() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Crosswords().score({**TASK, "gold": GOLD[:3]}, GOLD)


def test_equivalent_actions() -> None:
    same = Crosswords().canonical
    assert same("H1.  Heart ") == same("h1 heart") == "h1. heart" != same("v1. heart")
    assert parse_entry("h1. not one") is None


@pytest.mark.thorough
async def test_recorded_searches(load: Callable[[str], Any], expected: Callable[[str], Any]) -> None:
    environment = Crosswords()
    records = load("tot_crosswords_dfs")
    figures = []
    for record in records:
        data = {"clues": record["task"]["clues"]}
        task: Task = {"id": record["id"], "question": "", "gold": record["task"]["board_gt"], "data": data}
        visited = [output for output in record["outputs"] if output["role"] == "value"]
        for output in visited:
            transition = Transition(environment.start(task), "")
            for action in output["actions"]:
                transition = await environment.step(transition.state, action)
                assert transition.valid, transition.observation
            state = transition.state
            assert f"{state['board']}|{''.join(map(str, state['status']))}" == output["state"]
            score = environment.score(task, environment.answer(state))
            assert (score["letter"], score["word"]) == (output["r_letter"], output["r_word"])
            output["score"] = score
        deepest = max(visited, key=lambda output: len(output["actions"]))
        best = max(visited, key=lambda output: output["score"]["word"])
        figures.append((deepest["score"], best["score"]))
    for index, key in enumerate(["deepest_letter_word_game", "best_letter_word_game"]):
        chosen = [pair[index] for pair in figures]
        means = [round(100 * sum(s[what] for s in chosen) / len(chosen), 1) for what in ("letter", "word", "game")]
        assert means == expected("tot_crosswords_dfs")[key]


@pytest.mark.parametrize("kind", ["cot", "io"])
def test_recorded_samples(kind: str, load: Callable[[str], Any], expected: Callable[[str], Any]) -> None:
    scores = []
    for record in load("tot_crosswords_cot_io10"):
        task: Task = {"id": record["id"], "question": "", "gold": record["task"]["board_gt"]}
        texts = [output["text"] for output in record["outputs"] if output["kind"] == kind]
        for text, verdict in zip(texts, record["verdict"][kind], strict=True):
            scores.append(Crosswords().score(task, text))
            assert scores[-1] == {
                "letter": verdict["r_letter"],
                "word": verdict["r_word"],
                "game": verdict["solved"],
            }, text
    means = [round(100 * sum(s[what] for s in scores) / len(scores), 2) for what in ("letter", "word", "game")]
    assert means == expected("tot_crosswords_cot_io10")[kind]
