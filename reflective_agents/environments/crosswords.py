"""Mini crosswords of 5 x 5 letters (Tree of Thoughts, section 4.3)."""

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from reflective_agents.environments.base import Act, Environment, Example, Presets, State, Task, Transition, refuse
from reflective_agents.state.errors import Misuse

SIZE = 5
BLANK = "_"
CLUES = tuple(f"{direction}{line}" for direction in "hv" for line in range(1, SIZE + 1))
"""The names of the ten clues: rows from the top, then columns from the left."""

_ACTION = re.compile(r"([hv][1-5])\s*[.:]?\s+([a-z]+)", re.IGNORECASE)


class Entry(NamedTuple):
    """A word for a clue."""

    clue: str
    """One of `CLUES`."""
    word: str
    """In capitals; of any length."""


class Crosswords(Environment):
    """The puzzles as an environment.

    A task's `data["clues"]` are the ten clues in the order of `CLUES`, `gold` the 25 letters of the solution. The state
    holds the board, and for each clue 0 (open), 1 (entered) or 2 (overwritten since). A task ends when the board is
    full; the reward is the share of words that are right.
    """

    name = "crosswords"
    actions = "`h1. apple` or `v3. apple`: a clue that is open, and a word of five letters"
    goal = "Fill a 5 x 5 mini crossword: find for each of ten clues the word of five letters that it describes."
    rules = (
        "h1 to h5 are the rows from above, v1 to v5 the columns from the left. A word must fit the letters that are on "
        "the board already, since rows and columns share their letters."
    )
    answer_form = (
        "End with a line 'Output:' and the five rows of the board, five letters each, separated by blanks, and nothing "
        "after them."
    )
    figure = "game"
    correct_if = "all 25 letters are right"
    examples = (
        Example(
            "h1. Large body of salt water: _____\nv1. Possess; have (past participle: held on to): _____",
            (
                Act(
                    "A body of salt water with five letters is an ocean.",
                    "h1. ocean",
                    "OCEAN\n_____\n_____\n_____\n_____",
                ),
                Act("v1 begins with O, the first letter of ocean.", "v1. owned", "OCEAN\nW____\nN____\nE____\nD____"),
            ),
        ),
        Example(
            "h1. Large body of salt water: _____\nv1. Grasped: _____",
            (
                Act("Grasped may be taken.", "v1. taken", "T____\nA____\nK____\nE____\nN____"),
                Act("The body of water is an ocean.", "h1. ocean", "OCEAN does not fit into T____."),
            ),
            solved=False,
            why="The sure word, ocean, should have come first: a guess in its way makes it impossible.",
        ),
    )
    presets: ClassVar[Presets] = {
        "tree_of_thoughts": {
            "method": "depth_first",
            "n": 3,
            "max_depth": 10,
            "max_expansions": 1000,
            "proposals": "list",
            "lists": 5,
            "grades": "labels",
            "grade_samples": 1,
        },
    }

    def __init__(self, *, overwrite: bool = False) -> None:
        """Choose the rules: whether a word may overwrite letters, and a clue be entered again."""
        self._overwrite = overwrite

    def start(self, task: Task) -> State:
        """Return the state with an empty board.

        Raises:
            Misuse: if the task does not have ten clues, or its solution not 25 letters.
        """
        clues = task.get("data", {}).get("clues", [])
        gold = task.get("gold", BLANK * SIZE**2)
        if len(clues) != len(CLUES) or len(gold) != SIZE**2:
            raise Misuse(f"A mini crossword needs {len(CLUES)} clues, and a solution of {SIZE**2} letters if any.")
        return {"task": task, "board": BLANK * SIZE**2, "status": [0] * len(CLUES), "done": False}

    def public(self, state: State) -> str:
        """Return the clues with their squares."""
        clues = state["task"]["data"]["clues"]
        lines: list[str] = []
        for name, clue, word in zip(CLUES, clues, words(state["board"]), strict=True):
            lines.append(f"{name}. {clue}: {word}")
        return "\n".join(lines)

    def answer(self, state: State) -> str:
        """Return the board, a row a line; empty while no letter is entered."""
        board: str = state["board"]
        if set(board) == {BLANK}:
            return ""
        rows = [" ".join(row) for row in words(board)[:SIZE]]
        return "\n".join(rows)

    def key(self, state: State) -> str:
        """Return the board, and which of the clues are entered or overwritten."""
        return f"{state['board']}|{''.join(map(str, state['status']))}"

    async def step(self, state: State, action: str) -> Transition:
        """Enter a word."""
        entry = parse_entry(action)
        if entry is None or len(entry.word) != SIZE:
            why = f"The word must have {SIZE} letters." if entry else "No clue with its word can be read in this."
            return refuse(state, why)
        number = CLUES.index(entry.clue)
        if state["status"][number] == 1 and not self._overwrite:
            return refuse(state, f"{entry.clue} is entered already.")
        squares = words(state["board"])[number]
        if not self._overwrite and not _fits(squares, entry.word):
            return refuse(state, f"{entry.word} does not fit into {squares}.")
        return self._with_word(state, number, entry.word)

    def _with_word(self, state: State, number: int, word: str) -> Transition:
        board = list(state["board"])
        board[_squares(number)] = word
        after = words(board)
        status: list[int] = []
        for old, before, now in zip(state["status"], words(state["board"]), after, strict=True):
            status.append(old if _fits(before, now) else 2)
        status[number] = 1
        new = {**state, "board": "".join(board), "status": status, "done": BLANK not in board}
        reward = self.score(state["task"], self.answer(new)).get("word") if new["done"] else None
        return Transition(new, "\n".join(after[:SIZE]), reward, new["done"])

    def is_action(self, line: str) -> bool:
        """Return whether a line is a clue with a word."""
        return parse_entry(line) is not None

    def canonical(self, action: str) -> str:
        """Return clue and word in lower case."""
        entry = parse_entry(action)
        return f"{entry.clue}. {entry.word.lower()}" if entry else super().canonical(action)

    def final_action(self, answer: str) -> None:
        """Return None: a board is filled word by word."""
        return None

    def find_answer(self, text: str) -> str:
        """Return the whole text, from which the board is read."""
        return text.strip()

    def normal(self, answer: str) -> str:
        """Return the board; empty if there is not a letter on it."""
        board = read_board(answer)
        return "" if set(board) == {BLANK} else board

    def request(self, task: Task) -> str:
        """Return the clues, and how a board is written."""
        return (
            "Solve the mini crossword of 5 x 5 letters. The first five clues are the rows from above, the other five "
            f"the columns from the left.\n\n{task['question']}\n\n"
            "Give five lines of five letters, separated by blanks, and nothing else."
        )

    def score(self, task: Task, answer: str) -> dict[str, float]:
        """Return the share of letters and of words that are right, and whether all are ("letter", "word", "game")."""
        gold = task.get("gold")
        if gold is None:
            return {}
        board = read_board(answer)
        letter = _share_of_equal(board, gold)
        word = _share_of_equal(words(board), words(gold))
        return {"letter": letter, "word": word, "game": float(letter == 1)}


def _share_of_equal(found: Sequence[str], right: Sequence[str]) -> float:
    # Strict: of a solution that is too short, a part would be scored without a word.
    equal = [letters == solution for letters, solution in zip(found, right, strict=True)]
    return sum(equal) / len(equal)


def parse_entry(text: str) -> Entry | None:
    """Read an action such as `h1. apple`; None if the text is none. Case does not matter."""
    match = _ACTION.fullmatch(text.strip())
    return Entry(match[1].lower(), match[2].upper()) if match else None


def words(board: Sequence[str]) -> list[str]:
    """Return the letters in the squares of each of the ten clues, from the 25 letters of a board."""
    return ["".join(board[_squares(number)]) for number in range(len(CLUES))]


def read_board(text: str) -> str:
    """Read a board from an answer: 25 letters, or five lines of letters set apart, if need be after "Output:".

    Missing letters are blank, surplus ones are dropped; no text is refused.
    """
    if re.fullmatch(rf"[A-Za-z{BLANK}]{{{SIZE**2}}}", text):
        return text.upper()
    # As the published code of Tree of Thoughts does, so that its recorded figures compare.
    lines = text.rpartition("Output:\n")[2].strip().split("\n")[:SIZE]
    rows = ["".join(line.split(" ")[:SIZE])[:SIZE].ljust(SIZE, BLANK) for line in lines]
    return "".join(rows).upper().ljust(SIZE**2, BLANK)[: SIZE**2]


def _squares(number: int) -> slice:
    """Return where on the board the squares of a clue lie."""
    if number < SIZE:
        return slice(number * SIZE, (number + 1) * SIZE)
    return slice(number - SIZE, None, SIZE)


def _fits(squares: str, word: str) -> bool:
    """Return whether a word leaves the letters as they are."""
    return all(square in (BLANK, letter) for square, letter in zip(squares, word, strict=True))
