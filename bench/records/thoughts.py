"""The logs of Tree of Thoughts: games of 24, crosswords, and texts."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from bench.replays.records import Record
from reflective_agents.environments.crosswords import BLANK, CLUES, SIZE

Logs = Sequence[bytes]

LABELS = (("sure", 20), ("likely", 1), ("impossible", 0.001))
"""What a judge can say of a state, and what each time counts in the logs."""
SAMPLES, UNSAID = 3, "?"
"""How often a state was judged; a reply without a label counted nothing."""
WON = "24"
"""What is left when an answer is asked for instead of proposals."""
VOTES = 5
"""How often the texts of a step were voted on."""
PUZZLES = range(0, 100, 5)
"""The crosswords that were played."""
SAMPLED = 10
"""Boards that were sampled of each puzzle in either way."""


def puzzles(logs: Logs) -> Iterator[Record]:
    """Return the games of 24, from the first file: a table with the rank, the numbers and how many people solve it."""
    for number, row in enumerate(csv.DictReader(io.StringIO(logs[0].decode()))):
        rate = next(row[name] for name in row if name.lower().startswith("solved"))
        yield {"id": f"game24/{number}", "input": row["Puzzles"], "rank": int(row["Rank"]), "human_solved_rate": rate}


def samples(logs: Logs) -> Iterator[Record]:
    """Return a hundred answers to each game: a log, and the table of games."""
    inputs = [game["input"] for game in puzzles(logs[1:])]
    for game in json.loads(logs[0]):
        yield {
            "id": f"game24/{game['idx']}",
            "task": {"input": inputs[game["idx"]], "idx": game["idx"]},
            "outputs": [{"role": "sample", "text": text} for text in game["ys"]],
            "verdict": {"r": "".join(str(info["r"]) for info in game["infos"])},
        }


def beams(logs: Logs) -> Iterator[Record]:
    """Return the searched games: the proposals for each state, the judgements of each candidate, what was kept."""
    before: dict[str, Any] = {}
    for game in json.loads(logs[0]):
        rewards = [info["r"] for info in game["infos"]]
        spent = {name: round(value - before.get(name, 0), 5) for name, value in game["usage_so_far"].items()}
        before = game["usage_so_far"]
        yield {
            "id": f"game24/{game['idx']}",
            "task": {"input": game["steps"][0]["x"], "idx": game["idx"]},
            "outputs": [output for step in game["steps"] for output in _level(step)],
            "selected": [step["select_new_ys"] for step in game["steps"]],
            "final": game["ys"],
            "verdict": {"r": rewards, "any": int(any(rewards)), "first": rewards[0]},
            "stats": {"candidates": sum(len(step["new_ys"]) for step in game["steps"]), "usage": spent},
        }


def _level(step: dict[str, Any]) -> Iterator[Record]:
    """Return what was said in one step of a search; a candidate that comes twice was judged once."""
    lines: dict[str, list[str]] = {state: [] for state in step["ys"]}
    for candidate in step["new_ys"]:
        state = next(state for state in lines if candidate.startswith(state))
        lines[state].append(candidate[len(state) : -1])
    for state, proposed in lines.items():
        yield {"role": "propose", "step": step["step"], "state": state, "text": "\n".join(proposed)}
    judged: dict[str, float] = {}
    for candidate, value in zip(step["new_ys"], step["values"], strict=True):
        judged.setdefault(candidate, value)
    for candidate, value in judged.items():
        labels = _labels(value)
        yield {"role": "value", "step": step["step"], "state": candidate, "value": value, "samples": labels}


def _labels(value: float) -> list[str]:
    """Return the labels whose worth adds up to a value, the best first."""
    thousandths, labels = round(value * 1000), []
    for label, worth in LABELS:
        count, thousandths = divmod(thousandths, round(worth * 1000))
        labels += [label] * count
    return [*labels, *[UNSAID] * (SAMPLES - len(labels))]


def by_numbers(games: Sequence[Record]) -> Iterator[Record]:
    """Return what was said of each set of numbers that is left, over all searched games.

    Args:
        games: The records of `beams`.
    """
    by_key: dict[str, list[str]] = {}
    judged: dict[str, list[str]] = {}
    for game in games:
        for output in game["outputs"]:
            state = output["state"].strip().rpartition("\n")[2]
            key = _numbers(state or game["task"]["input"])
            if output["role"] == "propose":
                texts = [] if key == WON else by_key.setdefault(key, [])
                if output["text"] not in texts:
                    texts.append(output["text"])
            elif "left: " in state and any(label != UNSAID for label in output["samples"]):
                judged.setdefault(key, output["samples"])
    for key, texts in by_key.items():
        yield {"role": "propose", "key": key, "texts": texts}
    for key, samples in judged.items():
        yield {"role": "value", "key": key, "samples": samples}


def _numbers(line: str) -> str:
    """Return the numbers that a line leaves, sorted, as fractions; as they stand, if there are others between."""
    left = line.rpartition("left: ")[2].partition(")")[0]
    try:
        return " ".join(map(str, sorted(map(Fraction, left.split()))))
    except (ValueError, ZeroDivisionError):
        return left


def crosswords(logs: Logs) -> Iterator[Record]:
    """Return the puzzles: clues, and the letters of the board."""
    for number, (clues, board) in enumerate(json.loads(logs[0])):
        yield {"id": f"crosswords/{number}", "clues": clues, "board_gt": "".join(board)}


def depth_first(logs: Logs) -> Iterator[Record]:
    """Return the searched puzzles: with pruning, without it, what was proposed for each state, and the puzzles."""
    pruned, whole, cache = map(json.loads, logs[:3])
    known = [*crosswords(logs[3:])]
    for number, puzzle in enumerate(PUZZLES):
        row, seen = known[puzzle], set[str]()
        outputs: list[Record] = []
        start = _State(row["clues"])
        _propose(outputs, seen, start, cache)
        for visit in pruned[number]:
            state = _State(row["clues"])
            for action in visit["actions"]:
                state.enter(action)
            rewards = {name: visit["info"][name] for name in ("r_word", "r_letter")}
            visited = {"actions": visit["actions"], "count": visit["count"]}
            outputs.append({"role": "value", "state": state.short(), **visited, **rewards})
            if visit["count"]["impossible"] < 1:
                _propose(outputs, seen, state, cache)
        best = {**_best(pruned[number]), **{f"noprune_{name}": end for name, end in _best(whole[number]).items()}}
        yield {
            "id": row["id"],
            "task": {"clues": row["clues"], "board_gt": row["board_gt"], "idx": puzzle},
            "outputs": outputs,
            "verdict": {"steps": len(pruned[number]), **best},
        }


def _propose(outputs: list[Record], seen: set[str], state: "_State", cache: dict[str, dict[str, float]]) -> None:
    """Add what was proposed for a state, once."""
    proposed = cache.get(state.shown())
    if proposed is not None and state.short() not in seen:
        seen.add(state.short())
        candidates = [[action, round(score, 4)] for action, score in proposed.items()]
        outputs.append({"role": "propose", "state": state.short(), "candidates": candidates})


def _best(visits: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the first of the deepest states, and the first with the most words."""
    return {
        "deepest": _end(max(visits, key=lambda visit: len(visit["actions"]))),
        "best": _end(max(visits, key=lambda visit: float(visit["info"]["r_word"]))),
    }


def _end(visit: dict[str, Any]) -> dict[str, Any]:
    letters, words = visit["info"]["r_letter"], visit["info"]["r_word"]
    return {"actions": visit["actions"], "r_letter": letters, "r_word": words, "solved": int(letters == 1)}


class _State:
    """A board as the log's program keeps it: words may be entered over others, which marks those as changed."""

    def __init__(self, clues: Sequence[str]) -> None:
        self._clues, self._board, self._status = clues, [BLANK] * SIZE**2, [0] * len(CLUES)

    def enter(self, action: str) -> None:
        """Enter a word, such as `h1. apple`."""
        name, _, word = action.partition(". ")
        number, before = CLUES.index(name), self._words()
        squares = slice(number * SIZE, (number + 1) * SIZE) if number < SIZE else slice(number - SIZE, None, SIZE)
        self._board[squares] = list(word.upper())
        for other, (old, new) in enumerate(zip(before, self._words(), strict=True)):
            if any(a not in (b, BLANK) for a, b in zip(old, new, strict=True)):
                self._status[other] = 2
        self._status[number] = 1

    def _words(self) -> list[str]:
        rows = ["".join(self._board[row * SIZE : (row + 1) * SIZE]) for row in range(SIZE)]
        return [*rows, *("".join(self._board[column::SIZE]) for column in range(SIZE))]

    def short(self) -> str:
        """Return board and status in a line."""
        return f"{''.join(self._board)}|{''.join(map(str, self._status))}"

    def shown(self) -> str:
        """Return the state as the log's prompts show it."""
        words = self._words()
        text = "Current Board:\n" + "".join(f"{row}\n" for row in words[:SIZE])
        for status, title in enumerate(("Unfilled", "Filled", "Changed")):
            entries = zip(CLUES, self._clues, words, self._status, strict=True)
            lines = (f"{name}. {clue}: {word}\n" for name, clue, word, its in entries if its == status)
            text += f"\n{title}:\n{''.join(lines)}"
        return text


def boards(logs: Logs) -> Iterator[Record]:
    """Return sampled boards: a log that thinks first, one that does not, and the puzzles."""
    known = [*crosswords(logs[2:])]
    for thought, plain in zip(*map(json.loads, logs[:2]), strict=True):
        row = known[thought["idx"]]
        outputs: list[Record] = []
        verdict: dict[str, list[Record]] = {}
        for kind, way in (("cot", thought), ("io", plain)):
            outputs += [{"role": "sample", "kind": kind, "text": text} for text in way["ys"]]
            verdict[kind] = list(map(_score, way["infos"]))
        yield {
            "id": row["id"],
            "task": {"clues": row["clues"], "board_gt": row["board_gt"], "idx": thought["idx"]},
            "outputs": outputs,
            "verdict": verdict,
        }


def _score(info: dict[str, Any]) -> Record:
    solved = int(info.get("r_game", info["r_letter"] == 1))
    return {"r_letter": info["r_letter"], "r_word": info["r_word"], "solved": solved}


def texts(logs: Logs) -> Iterator[Record]:
    """Return plans and passages, with the votes on each."""
    for number, game in enumerate(json.loads(logs[0])):
        outputs: list[Record] = []
        chosen = []
        for step in game["steps"]:
            (state,) = step["ys"]
            outputs += [
                {"role": "sample", "step": step["step"], "text": text.removeprefix(state)} for text in step["new_ys"]
            ]
            outputs.append({"role": "vote", "step": step["step"], "n": VOTES, "counts": step["values"]})
            chosen.append(step["new_ys"].index(step["select_new_ys"][0]))
        yield {
            "id": f"text/{game.get('idx', number)}",
            "task": {"input": game["steps"][0]["x"]},
            "outputs": outputs,
            "verdict": {"chosen": chosen, "valid_votes": [sum(step["values"]) for step in game["steps"]]},
        }
