"""The recorded visits of Tree of Thoughts in mini crosswords (depth-first search).

The published program goes on after the board is full, enters a word twice, and comes back to states that it has seen:
the world here lets it. There each clue is judged in a call of its own, and one that is impossible prunes: here one call
says so. There the proposals of a state are kept: here the model says them again.
"""

from collections.abc import Sequence
from pathlib import Path

from bench.replays.measured import UNEXPLAINED, Differences, Measured, together
from bench.replays.records import Record, load
from bench.replays.thoughts import LIMITS, Key, Model, Result, run_of
from reflective_agents.environments.base import State, Task, Transition, refuse
from reflective_agents.environments.crosswords import CLUES, Crosswords, parse_entry, words
from reflective_agents.graphs._tree_of_thoughts.ranked import CONFIDENCE
from reflective_agents.state.settings.tree_of_thoughts import TreeOfThoughtsContext
from reflective_agents.tree_search.tree_paths import path

ROUNDED = "the log has rounded the confidences, whose sums were inexact: equal ones stand in the order of its visits"
NOT_ASKED = "proposals from which no step could follow, for the depth or the limit, are not asked for (number)"
BEST_JUDGED = (
    "of the deepest states, the published program answers with the first, and a run with the best judged: "
    "letters, words and games of its answers are {figures}"
)
CHILDREN = 3
"""Most children of a state."""
MOST, DEPTH = 100, 9
"""Most states, and the deepest."""


class Puzzles(Crosswords):
    """Crosswords that never end, and in which a word may be entered twice."""

    def __init__(self) -> None:
        """Let the real rules overwrite: what has been overwritten is refused here."""
        super().__init__(overwrite=True)

    def public(self, state: State) -> str:
        """Return the clues with what stands there, and the state as the log has it."""
        return f"{super().public(state)}\n{state['board']}|{''.join(map(str, state['status']))}"

    def key(self, state: State) -> str:
        """Return nothing: the published search comes back to a state that it has seen."""
        return ""

    async def step(self, state: State, action: str) -> Transition:
        """Enter a word that overwrites nothing."""
        transition = await super().step(state, action)
        if not transition.valid or 2 in transition.state["status"]:
            return refuse(state, "It does not fit.")
        return Transition({**transition.state, "done": False}, transition.observation)


PUZZLES = Puzzles()


def listed(candidates: Sequence[tuple[str, float]]) -> str:
    """Return proposals as a model lists them, with as many words of confidence as make up the sum of each."""
    lines = []
    for action, confidence in candidates:
        left = round(confidence * 10)
        for word, worth in CONFIDENCE.items():
            lines += [f"{action} ({word})"] * (left // worth)
            left %= worth
    return "\n".join(lines)


def label(count: dict[str, int]) -> str:
    """Return what one judge says of a state whose clues were judged one by one."""
    return "impossible" if count["impossible"] else "likely" if count["maybe"] else "sure"


class Proposed:
    """The proposals of a recorded search by state, in an order in which equals stand as they were visited."""

    def __init__(self, record: Record) -> None:
        self.start = PUZZLES.start(puzzle_of(record))
        self.visited = [output for output in record["outputs"] if output["role"] == "value"]
        proposals = {
            output["state"]: output["candidates"] for output in record["outputs"] if output["role"] == "propose"
        }
        turns, never = self._turns(), len(self.visited)
        self.of = {
            state: sorted(candidates, key=lambda one: turns.get((state, one[0]), never))
            for state, candidates in proposals.items()
        }
        self.rounded = any(
            _possible(state, proposals[state]) != _possible(state, self.of[state]) for state in proposals
        )

    @property
    def first(self) -> str:
        """The state in which nothing has been entered, as the log has it."""
        return f"{self.start['board']}|{''.join(map(str, self.start['status']))}"

    def _turns(self) -> dict[tuple[str, str], int]:
        """Return when an action was first taken in a state."""
        states: dict[tuple[str, ...], str] = {(): self.first}
        turns: dict[tuple[str, str], int] = {}
        for number, output in enumerate(self.visited):
            *before, action = output["actions"]
            turns.setdefault((states[tuple(before)], action), number)
            states[*before, action] = output["state"]
        return turns

    def shown(self, state: str) -> str:
        """Return a state of the log as a prompt shows it."""
        board, _, digits = state.partition("|")
        return PUZZLES.public({**self.start, "board": board, "status": [*digits]})


def _possible(state: str, candidates: Sequence[tuple[str, float]]) -> list[str]:
    """Return the actions that are taken in a state, in order: the surest that overwrite nothing."""
    ordered = [action for action, _ in sorted(candidates, key=lambda one: -one[1])]
    squares = dict(zip(CLUES, words(state.partition("|")[0]), strict=True))
    entries = [(action, parse_entry(action)) for action in ordered]
    return [action for action, entry in entries if entry and _fits(squares[entry.clue], entry.word)][:CHILDREN]


def _fits(squares: str, word: str) -> bool:
    return all(square in ("_", letter) for square, letter in zip(squares, word, strict=True))


def puzzle_model(proposed: Proposed) -> tuple[Model, int]:
    """Return the model of a recorded search, and how many proposals of the log are not asked for."""
    model, used = Model(), set[str]()

    def propose(state: str) -> None:
        model.add(Key("propose", proposed.shown(state)), listed(proposed.of[state]))
        used.add(state)

    propose(proposed.first)
    for number, output in enumerate(proposed.visited, 1):
        model.add(Key("value", proposed.shown(output["state"])), label(output["count"]))
        if not output["count"]["impossible"] and len(output["actions"]) < DEPTH and number < MOST:
            propose(output["state"])
    return model, len(proposed.of.keys() - used)


def puzzle_of(record: Record) -> Task:
    """Return the task of a record."""
    clues = record["task"]["clues"]
    return {"id": record["id"], "question": record["id"], "gold": record["task"]["board_gt"], "data": {"clues": clues}}


def visits(result: Result) -> list[str]:
    """Return the nodes in the order in which they were visited."""
    return [event["node"] for event in result["log"] if event["kind"] == "judge"]


def actions(result: Result, node: str) -> list[str]:
    """Return the actions that lead to a node."""
    return [step["action"] for step in path(result["tree"], node)[1:]]


def logged(record: Record) -> list[list[str]]:
    """Return the recorded visits, each as the actions that lead there."""
    return [output["actions"] for output in record["outputs"] if output["role"] == "value"]


async def search(tasks: Sequence[Task], models: Sequence[Model]) -> list[Result]:
    """Run the search on all tasks, each with its own model."""
    settings = TreeOfThoughtsContext(
        environment=PUZZLES, max_states=MOST, n=CHILDREN, max_depth=DEPTH, lists=1, **LIMITS
    )
    return await together(run_of(task, model, settings) for task, model in zip(tasks, models, strict=True))


async def dfs(folder: Path, name: str) -> Measured:
    """Replay the visits of a log."""
    records, differences = load(folder, name), Differences()
    proposed = [Proposed(record) for record in records]
    models = [puzzle_model(proposal) for proposal in proposed]
    for record, proposal, (_, left) in zip(records, proposed, models, strict=True):
        if proposal.rounded:
            differences.add(ROUNDED, record["id"])
        if left:
            differences.add(NOT_ASKED, f"{record['id']} ({left})")
    tasks = [puzzle_of(record) for record in records]
    results = await search(tasks, [model for model, _ in models])
    for record, result in zip(records, results, strict=True):
        if [actions(result, node) for node in visits(result)] != logged(record):
            differences.add(UNEXPLAINED, record["id"])
    deepest, best, answers = [], [], [result["answer"] for result in results]
    for task, result in zip(tasks, results, strict=True):
        boards = [PUZZLES.answer(result["tree"][node]["state"]) for node in visits(result)]
        depths = [node.count(".") for node in visits(result)]
        deepest.append(boards[depths.index(max(depths))])
        best.append(max(boards, key=lambda board: PUZZLES.score(task, board)["word"]))
    why = BEST_JUDGED.format(figures=" ".join(map(str, _shares(tasks, answers))))
    for record, answer, first in zip(records, answers, deepest, strict=True):
        if answer != first:
            differences.add(why, record["id"])
    figures = {
        "n": len(records),
        "dfs_steps": sum(len(visits(result)) for result in results),
        "deepest_letter_word_game": _shares(tasks, deepest),
        "best_letter_word_game": _shares(tasks, best),
    }
    return Measured(figures, differences, [model for model, _ in models])


def _shares(tasks: Sequence[Task], boards: Sequence[str]) -> list[float]:
    scores = [PUZZLES.score(task, board) for task, board in zip(tasks, boards, strict=True)]
    return [round(100 * sum(s[name] for s in scores) / len(scores), 1) for name in ("letter", "word", "game")]
