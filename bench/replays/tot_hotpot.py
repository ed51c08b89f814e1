"""The recorded depth-first search on HotpotQA: which node each step belongs to, and the world that it saw.

A record is a flat list: `mark` (the depth of the node that is taken from the stack), `propose` (5 samples) and `env`
(one for each new pair of thought and action). Nothing is judged. The published program takes the node that was put on
the stack last, and puts its children there so that the first is the next; nodes at depth 7 are not expanded. It expands
also nodes whose wrong answer has ended the task; it ends at a right one, which the reward tells it. All nodes share one
session: the `steps` in the feedback count the actions of all branches.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.replays.records import Record
from bench.replays.tree_world import Outcome, Path, TreeWorld, canonical
from reflective_agents.environments.base import Task

ACTIONS = "Search[entity], Lookup[keyword], Finish[answer]"

_TAKEN = re.compile(r"DFS at node depth \d+\.")


class Thought(NamedTuple):
    """A step of an agent: children of one node differ in thought or action."""

    thought: str
    action: str


class Child(NamedTuple):
    """A node that an expansion made. `reward` is 1 or 0 once the task has ended, None before."""

    step: Thought
    observation: str
    reward: float | None

    @property
    def ended(self) -> bool:
        """Whether the task has ended here."""
        return self.reward is not None


class Expansion(NamedTuple):
    """One call for proposals, with what it brought; `path` leads to the node, and `steps` are those of the samples."""

    path: tuple[Thought, ...]
    steps: tuple[Thought, ...]
    children: tuple[Child, ...]

    @property
    def actions(self) -> Path:
        """The path without its thoughts."""
        return tuple(canonical(step.action) for step in self.path)


def task_of(record: Record) -> Task:
    """Return the task of a record; its right answer is not in it."""
    return {"id": record["id"], "question": record["task"]["question"]}


def world_of(expansions: Sequence[Expansion]) -> TreeWorld:
    """Return the world that a search saw. It knows actions only: of those with several thoughts, the first counts."""
    outcomes: dict[Path, Outcome] = {}
    for expansion in expansions:
        for child in expansion.children:
            path = (*expansion.actions, canonical(child.step.action))
            outcomes.setdefault(path, Outcome(child.observation, child.reward, child.ended))
    return TreeWorld("questions", ACTIONS, outcomes)


def step_of(sample: str) -> Thought:
    """Return thought and action of a sample as the program reads them: each ends at its line's next colon."""
    lines = [line.split(":") for line in sample.split("\n") if ":" in line]
    thought = next((line[1].strip() for line in lines if line[0].startswith("Thought")), "")
    return Thought(thought, next((line[1].strip() for line in lines if line[0].startswith("Action")), ""))


def read_search(record: Record) -> list[Expansion]:
    """Return the steps of a recorded search in order, each with its place in the tree.

    Raises:
        ValueError: if the record cannot be from the published program; the text says where.
    """
    return list(_read(record["outputs"]))


def _read(outputs: Sequence[Record]) -> Iterator[Expansion]:
    stack: list[tuple[Thought, ...]] = [()]
    marks = [index for index, output in enumerate(outputs) if _TAKEN.match(output.get("text", ""))]
    for begin, end in zip(marks, [*marks[1:], len(outputs)], strict=True):
        if not stack:
            raise ValueError(f"output {begin}: no node is left")
        path = stack.pop()
        if not outputs[begin]["text"].startswith(f"DFS at node depth {len(path)}."):
            raise ValueError(f"output {begin}: {outputs[begin]['text']!r}, but the next node lies at {len(path)}")
        proposed = [output for output in outputs[begin:end] if output["role"] == "propose"]
        if not proposed:
            continue  # too deep, or the end
        children = [_child(output) for output in outputs[begin:end] if output["role"] == "env"]
        steps = tuple(map(step_of, proposed[0]["samples"]))
        yield Expansion(path, steps, tuple(children))
        stack += [(*path, child.step) for child in reversed(children)]


def _child(output: Record) -> Child:
    feedback = ast.literal_eval(output["feedback"])
    ended = feedback["answer"] is not None
    return Child(
        Thought(output["thought"], output["action"]),
        output["observation"],
        float(feedback.get("em", 0)) if ended else None,
    )
