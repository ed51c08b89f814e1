"""Worlds of which all chances are known, and searches in them without a model or a graph."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from bench.chance import Measured
from reflective_agents.state.tree import Stats, TreeNode
from reflective_agents.tree_search.algorithms.ab_mcts import AbMcts
from reflective_agents.tree_search.base import START, Algorithm, Child, Job, ask, tell
from reflective_agents.tree_search.tree_paths import ROOT, depth_of
from tests.tree_search.algorithms.broken import Misled
from tests.tree_search.algorithms.growing import node


class World(Protocol):
    """Where a search is carried out."""

    def carry_out(self, job: Job) -> list[Child]: ...


def measure(
    algorithm: Algorithm, world: Callable[[random.Random], World], runs: int = 500, jobs: int = 1000
) -> Measured:
    """Search many times, each time in a new world, and count how often the solution is found in so many jobs."""
    return Measured(sum(_solves(algorithm, world, run, jobs) for run in range(runs)), runs)


def _solves(algorithm: Algorithm, make: Callable[[random.Random], World], run: int, jobs: int) -> bool:
    algorithm = _seeded(algorithm, str(run))
    world = make(random.Random(run))
    stats: Stats = tell(algorithm, {}, START, [Child(node(ROOT, None, kind="root"), True)])
    for _ in range(jobs):
        chosen, sent = ask(algorithm, stats)
        if not chosen:
            return False
        stats.update(sent)
        children = world.carry_out(chosen[0])
        if any(child.node["solved"] for child in children):
            return True
        stats.update(tell(algorithm, stats, chosen[0], children))
    return False


def _seeded(algorithm: Algorithm, seed: str) -> Algorithm:
    if isinstance(algorithm, Misled):
        return Misled(_seeded(algorithm.inner, seed))
    return replace(algorithm, seed=seed) if isinstance(algorithm, AbMcts) else algorithm


@dataclass
class Lock:
    """It opens after `depth` right steps.

    Attributes:
        luck: Where chance comes from.
        p: How likely a step is right after right ones.
        depth: How many steps there are.
        kinds: How many different right steps there are, and wrong ones; None if no two draws are the same.
        error: How likely a step is judged to be what it is not.
    """

    luck: random.Random
    p: float = 0.5
    depth: int = 3
    kinds: int | None = 1
    error: float = 0.0
    right: dict[str, bool] = field(default_factory=lambda: {ROOT: True})

    def carry_out(self, job: Job) -> list[Child]:
        """Draw steps, those of a kind as one; each is judged at once."""
        return [self.child(drawn) for drawn in self.drawn(job)]

    def drawn(self, job: Job) -> list[TreeNode]:
        samples: dict[tuple[bool, int], int] = {}
        for index in range(job["width"]):
            right = self.right[str(job["node"])] and self.luck.random() < self.p
            kind = (right, index if self.kinds is None else self.luck.randrange(self.kinds))
            samples[kind] = samples.get(kind, 0) + 1
        steps = []
        for index, ((right, _), count) in enumerate(samples.items()):
            step = node(f"{job['node']}.{index}", None, samples=count)
            self.right[step["id"]] = right
            steps.append(step)
        return steps

    def child(self, step: TreeNode) -> Child:
        """A step with its score."""
        ends = step["depth"] == self.depth
        return Child({**step, "score": self.seen(step), "solved": ends and self.right[step["id"]]}, not ends)

    def seen(self, step: TreeNode) -> float:
        """1 if a step seems right, else 0."""
        return float(self.right[step["id"]] != (self.luck.random() < self.error))


class JudgedLater(Lock):
    """The same where steps are judged by jobs of their own."""

    def carry_out(self, job: Job) -> list[Child]:
        if job["kind"] == "judge":
            return [self.child(node(key)) for key in job["nodes"]]
        return [Child(step, True) for step in self.drawn(job)]


class Planned(Lock):
    """The same where a step is visited after it was thought of: only then it is known whether it ends."""

    def carry_out(self, job: Job) -> list[Child]:
        key = str(job["node"])
        own = [] if key == ROOT else [self.child(node(key))]
        if own and not own[0].expandable:
            return [Child({**own[0].node, "reward": float(self.right[key])}, False)]
        return [*own, *(Child({**step, "terms": {"r0": self.seen(step)}}, True) for step in self.drawn(job))]


@dataclass
class Answers:
    """Whole answers: those at the root are right with one chance, those that refine another one with another."""

    luck: random.Random
    first: float
    refined: float

    def carry_out(self, job: Job) -> list[Child]:
        right = self.luck.random() < (self.first if job["node"] == ROOT else self.refined)
        return [Child(node(f"{job['node']}.{job['first']}", float(right), solved=right), True)]


class Arms:
    """A tree of three levels, `m` children to a node, with the solution at one of its ends. On the way there nothing
    can be told; ends under the same child of the root as the solution are worth 1/2, all others 0.

    Args:
        luck: Puts the solution somewhere.
        m: How many children a node has.
        warm: Whether there are such ends at all.
    """

    def __init__(self, luck: random.Random, m: int = 4, warm: bool = True) -> None:
        self.solution = f"{ROOT}.{luck.randrange(m)}.{luck.randrange(m)}.{luck.randrange(m)}"
        self.warm = 0.5 if warm else 0.0

    def carry_out(self, job: Job) -> list[Child]:
        return [self._child(f"{job['node']}.{number}") for number in range(job["width"])]

    def _child(self, key: str) -> Child:
        if depth_of(key) < 3:
            return Child(node(key, 0.25 if self.warm else 0.0), True)
        worth = self.warm if key.startswith(self.solution[:3] + ".") else 0.0
        solved = key == self.solution
        return Child(node(key, 1.0 if solved else worth, solved=solved), False)
