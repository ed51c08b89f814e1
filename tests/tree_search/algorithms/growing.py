"""Searches without a model: what comes of a job is a function of the job, whoever carries it out and whenever."""

import random
from collections.abc import Callable, Sequence
from typing import Any

from reflective_agents.state.tree import Stats, Tree, TreeNode, merge_nodes, merge_stats
from reflective_agents.tree_search.base import START, Algorithm, Child, Job, ask, tell, withdraw
from reflective_agents.tree_search.tree_paths import ROOT, depth_of, parent_of, round_score


def node(node_id: str, score: float | None = 0.5, **changes: Any) -> TreeNode:
    made = TreeNode(
        id=node_id,
        parent_id=parent_of(node_id),
        depth=depth_of(node_id),
        kind="answer",
        messages=[],
        critique="",
        score=score if score is None else round_score(score),
        solved=False,
    )
    return {**made, **changes}  # type: ignore[typeddict-item]


def children_of(seed: int, job: Job, depth: int) -> list[Child]:
    """What comes of a job: fewer children than asked for, some without a score, some that end there."""
    if not job["node"]:
        return [Child(node(ROOT, None, kind="root"), True)]
    made = []
    for number in range(job["first"], job["first"] + job["width"]):
        node_id = f"{job['node']}.{number}"
        chance = random.Random(f"{seed} {node_id}")
        if chance.random() < 0.9:
            score = None if chance.random() < 0.1 else chance.random()
            made.append((score, depth_of(node_id) < depth and chance.random() < 0.9))
    ids = (f"{job['node']}.{job['first'] + number}" for number in range(len(made)))
    return [Child(node(node_id, score), expandable) for node_id, (score, expandable) in zip(ids, made, strict=True)]


def judged_later(seed: int, job: Job, depth: int) -> list[Child]:
    """The same children where they are graded by jobs of their own; a grade may fail."""
    if job["kind"] != "judge":
        children = children_of(seed, {**job, "kind": "expand"}, depth)
        return [Child({**child.node, "score": None}, child.expandable) for child in children]
    chances = [(node_id, random.Random(f"grade {seed} {node_id}")) for node_id in job["nodes"]]
    return [
        Child(node(node_id, chance.random()), depth_of(node_id) < depth)
        for node_id, chance in chances
        if chance.random() < 0.9
    ]


Comes = Callable[[int, Job, int], list[Child]]


class Search:
    """A search that is carried out: its tree, its statistics, the jobs in flight, and all that were ever told."""

    def __init__(self, algorithm: Algorithm, seed: int = 0, depth: int = 5, comes: Comes = children_of) -> None:
        self.algorithm, self.seed, self.depth, self.comes = algorithm, seed, depth, comes
        self.chance = random.Random(f"moves {seed}")  # the same moves again could give up the same job for ever
        self.tree: Tree = {}
        self.stats: Stats = {}
        self.flight: list[Job] = []
        self.done: list[tuple[Job, Sequence[Child]]] = []
        self.before: list[Stats] = []
        """The statistics that each job of `done` was told to."""
        self.tell(START)

    def ask(self, slots: int = 1) -> list[Job]:
        jobs, changes = ask(self.algorithm, self.stats, slots)
        self.stats = merge_stats(self.stats, [changes])
        self.flight += jobs
        return jobs

    def tell(self, job: Job) -> Stats:
        children = self.comes(self.seed, job, self.depth)
        changes = tell(self.algorithm, self.stats, job, children)
        self.before.append(self.stats)
        self.done.append((job, children))
        self.stats = merge_stats(self.stats, [changes])
        self.tree = merge_nodes(self.tree, [{child.node["id"]: child.node for child in children}])
        self.flight = [other for other in self.flight if other is not job]
        return changes

    def withdraw(self, job: Job) -> None:
        self.stats = merge_stats(self.stats, [withdraw(self.stats, job)])
        self.flight = [other for other in self.flight if other is not job]

    def run(self, jobs: int, slots: int = 1) -> list[str | None]:
        """Carry out up to so many jobs, `slots` at once, and return their nodes."""
        while len(self.done) <= jobs and (sent := self.ask(slots)):
            for job in sent:
                self.tell(job)
        return [job["node"] for job, _ in self.done[1:]]

    def interleave(self, moves: int) -> None:
        """Ask, tell and withdraw at random, and tell again what was told; nothing is in flight at the end."""
        for _ in range(moves):
            move = self.chance.random()
            if move < 0.5 or not self.flight:
                self.ask(self.chance.randint(1, 4))
            elif move < 0.85:
                self.tell(self.chance.choice(self.flight))
            else:
                self.withdraw(self.chance.choice(self.flight))
        for job in list(self.flight):
            self.tell(job)
