"""The recorded beams of Tree of Thoughts in the game of 24 (breadth-first search).

The published program takes any line of a reply as a step, and so does the world here. A line that a step has already
proposed is worth 0 there without a call, and keeps its place: here the model marks it, and the world rewards it with 0.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.replays.measured import UNEXPLAINED, Differences, Measured, together
from bench.replays.records import Record, load
from bench.replays.thoughts import LIMITS, Key, Model, Result, marked, run_of, unmarked
from reflective_agents.environments.base import State, Task, Transition, refuse
from reflective_agents.environments.game24 import Game24
from reflective_agents.state.settings.tree_of_thoughts import TreeOfThoughtsContext
from reflective_agents.tree_search.label_values import grade_from_labels

GAME = Game24()
NOTHING = "(The log holds no proposals.)"
STEPS = 4
"""Levels of a game: three arithmetic steps and the answer."""
WIDTH = 5
"""The recorded beam."""


class Sparse(Model):
    """One that has nothing to propose where the log ends, which it remembers, and then no answer either."""

    def take(self, key: Key) -> str:
        """Serve the next answer; where the log ends, none."""
        if key.role == "value" or self._answers[key]:
            return super().take(key)
        if key.role == "propose":
            self.misses.append(key)
        return NOTHING


class Lines(Game24):
    """A world in which any line is a step, and the last of four is the answer. What a text is worth it may know."""

    def __init__(self, worth: Mapping[str, float] | None = None) -> None:
        """Choose what texts are worth, by how they are shown; the others the model has to judge."""
        self._worth = worth or {}

    def start(self, task: Task) -> State:
        """Begin without a line."""
        return {"task": task, "text": "", "steps": 0, "done": False}

    def public(self, state: State) -> str:
        """Return the numbers and the lines."""
        return f"{state['task']['question']}\n{state['text']}"

    def answer(self, state: State) -> str:
        """Return the text once it is complete."""
        return str(state["text"]) if state["steps"] == STEPS else ""

    def key(self, state: State) -> str:
        """Return nothing: the log has a value for each text."""
        return ""

    async def step(self, state: State, action: str) -> Transition:
        """Add a line. One that this step has proposed before is worth nothing."""
        if action == NOTHING:
            return refuse(state, action)
        line, again = unmarked(action)
        new = {**state, "text": f"{state['text']}{line}\n", "steps": state["steps"] + 1}
        return Transition(new, "", 0.0 if again else self._worth.get(self.public(new)))

    def with_final_reward(self, done: Transition) -> Transition:
        """Leave it to the model what a text without a known worth is worth."""
        return done

    def canonical(self, action: str) -> str:
        """Return the line with its marks: no two are the same."""
        return action


LINES = Lines()


def beam_model(record: Record, kind: type[Model] = Model) -> Model:
    """Return the model of a recorded search."""
    model, seen = kind(), Counter[tuple[int, str]]()
    for output in record["outputs"]:
        shown = f"{record['task']['input']}\n{output['state']}"
        if output["role"] == "value":
            for sample in output["samples"]:
                model.add(Key("value", shown), sample)
            continue
        lines = []
        for line in output["text"].split("\n"):
            candidate = (output["step"], f"{output['state']}{line}\n")
            lines.append(marked(line, seen[candidate]))
            seen[candidate] += 1
        model.add(Key("propose", shown), "\n".join(lines))
    return model


def text_of(result: Result, node: str) -> str:
    """Return the lines up to a node."""
    return str(result["tree"][node]["state"]["text"])


def beams(result: Result) -> list[list[str]]:
    """Return the beam of each level, as texts in order: those that were expanded, and the last."""
    levels: defaultdict[int, list[str]] = defaultdict(list)
    for entry in result["log"]:
        if entry["kind"] == "expand" and entry["node"] != "0":
            levels[entry["node"].count(".")].append(text_of(result, entry["node"]))
    last = [text_of(result, node) for node in result["stats"]["0"]["own"]["frontier"]]
    return [*(levels[level] for level in sorted(levels)), last]


def task_of(record: Record) -> Task:
    """Return the task of a record."""
    return {"id": record["id"], "question": record["task"]["input"]}


def worth_of(records: Sequence[Record]) -> dict[str, float]:
    """Return what the log says that each text is worth."""
    worth: dict[str, float] = {}
    for record in records:
        for output in record["outputs"]:
            if output["role"] == "value":
                text = f"{record['task']['input']}\n{output['state']}"
                worth[text] = grade_from_labels(output["samples"]).score
    return worth


async def search(records: Sequence[Record], models: Sequence[Model], width: int, world: Lines = LINES) -> list[Result]:
    """Run the search on all tasks with a beam of this width, one job at a time, so that repetitions come in order."""
    settings = TreeOfThoughtsContext(environment=world, beam=width, n=100, parallel=1, **LIMITS)
    runs = (run_of(task_of(record), model, settings) for record, model in zip(records, models, strict=True))
    return await together(runs)


async def bfs(folder: Path, name: str) -> Measured:
    """Replay the beams of a log; and narrower ones as far as it holds their proposals, with its values at once."""
    records, differences = load(folder, name), Differences()
    models = [beam_model(record) for record in records]
    results = await search(records, models, WIDTH)
    for record, result in zip(records, results, strict=True):
        if beams(result) != record["selected"] or beams(result)[-1] != record["final"]:
            differences.add(UNEXPLAINED, record["id"])
    every = [[text_of(result, node) for node in result["tree"]] for result in results]
    figures: dict[str, Any] = {
        "n": len(records),
        "success_any": won(records, [beams(result)[-1] for result in results]),
        "success_first": won(records, [[result["answer"] or ""] for result in results]),
        "mean_candidates": round(sum(len(texts) - 1 for texts in every) / len(every), 2),
        "oracle_any_candidate": won(records, every),
    }
    valued = Lines(worth_of(records))
    for width in range(1, WIDTH):
        narrow = [beam_model(record, Sparse) for record in records]
        outputs = [beams(result)[-1] for result in await search(records, narrow, width, valued)]
        figures[f"b{width}_any"] = won(records, outputs)
        figures[f"b{width}_first"] = won(records, [texts[:1] for texts in outputs])
        figures[f"b{width}_missing_proposals"] = sum(len(model.misses) for model in narrow)
    return Measured(figures, differences, [*models])


def won(records: Sequence[Record], outputs: Sequence[Sequence[str]]) -> int:
    """Return in how many games one of the outputs is right."""
    games = 0
    for task, texts in zip(map(task_of, records), outputs, strict=True):
        games += any(GAME.score(task, text)["solved"] == 1 for text in texts)
    return games
