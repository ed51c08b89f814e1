"""The recorded LATS searches in WebShop: which node each step belongs to, and the world that they saw.

A record is a flat list: `propose` (samples), `env` (one for each sample that has an action), `value` (one for each new
node that does not end the task), and `mark` after the values of an expansion. Which node was expanded is not in it. It
follows from the published program, which is repeated here as far as it decides that, mistakes included:

- Select: from the root to the child of the highest UCT, by level; not visited counts as infinite (as its value, if that
  is below 0), ties go to the first. UCT = value / visits + sqrt(2 ln(visits of the parent) / visits), where value is a
  mean already. Branches whose children all have ended are cut off.
- Expand: 10 samples at the root, 5 elsewhere. Samples of one action are one node, in the place of the first.
- Evaluate: one vote for each child that goes on, divided by the highest; a child that has ended gets the highest + 1,
  and the votes shift if it is not the last.
- Simulate: from the child of the highest value: 5 samples, the first that ends the task is the end; otherwise on from
  the highest vote, 15 steps at most, and then the reward is -0.5. The nodes are not attached to the tree.
- Backpropagate the reward of the end as a running mean, from there to the root, unless it is 1: that ends the search.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from bench.replays.records import Record
from bench.replays.tree_world import Outcome, Path, TreeWorld, canonical
from reflective_agents.environments.base import Task

ACTIONS = "search[words], click[button], think[text]"
MAX_SIMULATED = 15
"""Steps of one simulation."""

_STATED = re.compile(r"correctness score is (\d+)")


class Child(NamedTuple):
    """A node that an expansion made. `vote` is the judge's, as the program read it out of `reply`."""

    action: str
    observation: str
    reward: float
    vote: float | None
    reply: str

    @property
    def ended(self) -> bool:
        """Whether the task has ended here. A purchase that is worth nothing does not end it."""
        return self.reward > 0


class Expansion(NamedTuple):
    """One call for proposals, with what it brought.

    `path` leads to the node that was expanded; `actions` are those of the samples, in order and with repetitions.
    `iteration` counts from 1. `certain` is False where the node that the program would have chosen does not lie as deep
    as the log says: then it is the best one that does.
    """

    iteration: int
    phase: Literal["expand", "simulate"]
    path: Path
    actions: tuple[str, ...]
    children: tuple[Child, ...]
    certain: bool = True


class _Group(NamedTuple):
    """A call for proposals and what follows it, up to the next one. `last` groups may be cut off."""

    number: int
    samples: list[str]
    steps: list[Record]
    values: list[Record]
    marked: bool
    last: bool

    def children(self, *, simulates: bool) -> list[Child]:
        """Return the nodes that were made: one for each action, in order, with the votes for those that go on."""
        nodes = {step["action"].strip(): step for step in self.steps}
        judged = [action for action, step in nodes.items() if step["reward"] <= 0]
        if simulates and len(judged) < len(nodes):
            judged = []  # the simulation is at its end
        if len(self.values) > len(judged) or (len(self.values) < len(judged) and not self.last):
            raise ValueError(f"output {self.number}: {len(self.values)} values for {len(judged)} nodes")
        votes = {
            action: (value["value"], value["samples"][0]) for action, value in zip(judged, self.values, strict=False)
        }
        return [
            Child(action, step["observation"], step["reward"], *votes.get(action, (None, "")))
            for action, step in nodes.items()
        ]


def _groups(outputs: Sequence[Record]) -> Iterator[_Group]:
    starts = [index for index, output in enumerate(outputs) if output["role"] == "propose"]
    for begin, end in zip(starts, [*starts[1:], len(outputs)], strict=True):
        rest = outputs[begin:end]
        steps, values = ([output for output in rest if output["role"] == role] for role in ("env", "value"))
        marked = any(output["role"] == "mark" for output in rest)
        yield _Group(begin, rest[0]["samples"], steps, values, marked, end == len(outputs))


@dataclass(eq=False)
class _Node:
    action: str = ""
    parent: "_Node | None" = None
    reward: float = 0.0
    value: float = 0.0
    visits: int = 0
    children: "list[_Node]" = field(default_factory=list)

    @property
    def path(self) -> Path:
        return (*self.parent.path, self.action) if self.parent else ()

    @property
    def ended(self) -> bool:
        return self.reward > 0

    def uct(self) -> float:
        if self.visits == 0:
            return math.inf if self.value >= 0 else self.value
        assert self.parent is not None
        return self.value / self.visits + math.sqrt(2 * math.log(self.parent.visits) / self.visits)

    def leaves(self) -> "Iterator[_Node]":
        if not self.children and not self.ended:
            yield self
        for child in self.children:
            yield from child.leaves()


def task_of(record: Record) -> Task:
    """Return the task of a record."""
    return {"id": record["id"], "question": record["task"]["instruction"]}


def world_of(expansions: Sequence[Expansion]) -> TreeWorld:
    """Return the world that a search saw."""
    outcomes: dict[Path, Outcome] = {}
    for expansion in expansions:
        for child in expansion.children:
            reward = child.reward if child.ended else None
            outcome = Outcome(child.observation, reward, child.ended, valid=child.reward >= 0)
            outcomes.setdefault((*expansion.path, child.action), outcome)
    return TreeWorld("webshop", ACTIONS, outcomes)


def proposals_of(expansions: Sequence[Expansion]) -> dict[Path, list[tuple[str, ...]]]:
    """Return what was proposed after which actions: a batch for each time that the model was asked."""
    batches: defaultdict[Path, list[tuple[str, ...]]] = defaultdict(list)
    for expansion in expansions:
        batches[tuple(map(canonical, expansion.path))].append(expansion.actions)
    return dict(batches)


def votes_of(expansions: Sequence[Expansion]) -> dict[Path, tuple[float, str]]:
    """Return the judge's votes, as the program read them, and its words, by the path of the node that was judged."""
    return {
        tuple(map(canonical, (*expansion.path, child.action))): (child.vote, child.reply)
        for expansion in expansions
        for child in expansion.children
        if child.vote is not None
    }


def stated(text: str) -> float | None:
    """Return the score from 0 to 1 that a judge's words state; None if they state none.

    The program looks for "10" anywhere in them, then for "9", and so on; what has none of these is worth -1, also
    where the words say 0.
    """
    found = _STATED.findall(text)
    return int(found[-1]) / 10 if found else None


def action_of(sample: str) -> str:
    """Return the action of a sample as the program reads it: it ends at the next colon. Empty if there is none."""
    lines = [line.split(":") for line in sample.split("\n") if line.startswith("Action") and ":" in line]
    return lines[0][1].strip() if lines else ""


def read_search(record: Record) -> list[Expansion]:
    """Return the steps of a recorded search, each with its place in the tree.

    Raises:
        ValueError: if the record cannot be from the published program; the text says where.
    """
    return list(_Reading().read(record["outputs"]))


class _Reading:
    """Repeats what the program decides, and takes what models and shop said from the record."""

    def __init__(self) -> None:
        self._root = _Node()
        self._iteration = 0
        self._simulated: _Node | None = None  # the node that a simulation has come to
        self._steps = 0
        self._certain = True
        self._over = False

    def read(self, outputs: Sequence[Record]) -> Iterator[Expansion]:
        for group in _groups(outputs):
            if self._over:
                raise ValueError(f"output {group.number}: the search had ended")
            yield self._expansion(group)

    def _expansion(self, group: _Group) -> Expansion:
        simulated, depth = self._simulated, group.steps[0]["depth"] - 1 if group.steps else None
        if simulated and group.marked:
            raise ValueError(f"output {group.number}: a simulation is followed by the mark of an expansion")
        node = simulated or self._selected(depth, group.number)
        if depth is not None and len(node.path) != depth:
            raise ValueError(f"output {group.number}: expected is depth {len(node.path) + 1}, not {depth + 1}")
        self._iteration += not simulated
        children = group.children(simulates=simulated is not None)
        made = [_Node(child.action, node, child.reward) for child in children]
        (self._simulate if simulated else self._expand)(node, made, [child.vote or 0.0 for child in children])
        actions = tuple(filter(None, map(action_of, group.samples)))
        return Expansion(
            self._iteration, "simulate" if simulated else "expand", node.path, actions, tuple(children), self._certain
        )

    def _selected(self, depth: int | None, number: int) -> _Node:
        node = _select(self._root)
        self._certain = node is not None and depth in (None, len(node.path))
        if node and self._certain:
            return node
        others = [leaf for leaf in self._root.leaves() if len(leaf.path) == depth]
        if not others:
            raise ValueError(f"output {number}: no node at depth {depth} is left to be expanded")
        return max(others, key=_Node.uct)

    def _expand(self, node: _Node, made: list[_Node], votes: list[float]) -> None:
        node.children = made
        judged = [vote for child, vote in zip(made, votes, strict=True) if not child.ended]
        shifted = judged + [0.0] * (len(made) - len(judged))
        highest = max(shifted, default=0.0) or 1.0
        for child, vote in zip(made, shifted, strict=True):
            child.value = (highest + 1 if child.ended else vote) / highest
        if not made:
            self._over = True  # the program fails here
            return
        first = max(made, key=lambda child: child.value)
        if first.ended:
            self._end(first)
        else:
            self._simulated, self._steps = first, 0

    def _simulate(self, node: _Node, made: list[_Node], votes: list[float]) -> None:
        if not made:
            return  # the program asks again
        end = next((child for child in made if child.ended), None)
        if end:
            return self._end(end)
        best = made[votes.index(max(votes))]
        self._simulated, self._steps = best, self._steps + 1
        if self._steps == MAX_SIMULATED:
            best.reward = -0.5
            self._end(best)

    def _end(self, last: _Node) -> None:
        self._simulated = None
        reward, node = last.reward, last
        self._over = reward == 1 or any(node.reward == 1 for node in _attached(self._root))
        above: _Node | None = node
        while above:
            above.visits += 1
            above.value += (reward - above.value) / above.visits
            above = above.parent


def _select(root: _Node) -> _Node | None:
    """Return the node that the program expands; None if all have ended. Cuts off what it cuts off."""
    node: _Node | None = root
    while node and node.children:
        going_on = [child for child in node.children if not child.ended]
        if going_on:
            node = max(going_on, key=_Node.uct)
            continue
        if node.parent:
            node.parent.children.remove(node)
        node = node.parent
    return node


def _attached(node: _Node) -> Iterator[_Node]:
    yield node
    for child in node.children:
        yield from _attached(child)
