"""Carrying out one job of a search: candidates are sampled, act and are graded, each flowing on its own."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from nodes.candidates import Branch, Candidate, Grade, judged, standing, trajectory_text
from nodes.chat import complete
from nodes.memo import at_once, memo_of
from nodes.policies import Policy
from nodes.step import Step
from nodes.transcript import quoted
from nodes.values import Value
from nodes.worlds import World
from prompts import lats as prompts
from search.base import ROOT, Child
from state.errors import LimitReached, ModelFailed
from state.searching import TreeContext
from state.tree import Lesson, TreeNode

Stop = LimitReached | ModelFailed


@dataclass
class Grown:
    """What came of a job: the children, what was learned from those that failed, and what has stopped some of them.

    `keys` says which node was the first in a state of the world, `refused` why steps could not be carried out, and
    `fruitless` whether nothing has come that the search could go on with.
    """

    children: list[Child] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    stops: list[Stop] = field(default_factory=list)
    merged: int = 0
    refused: list[str] = field(default_factory=list)
    fruitless: bool = False


@dataclass
class Search:
    """What the jobs of a search have in common: a world, a policy and a value, each apart.

    `revise` says whether an answer may be expanded, `max_lessons` how many reflections are made. `later` leaves grading
    to jobs of its own, `once` leaves out states of the world that were graded before, wherever in the tree.
    """

    step: Step[Any]
    world: World
    policy: Policy
    value: Value
    run_id: str
    revise: bool = False
    max_lessons: int = 0
    later: bool = False
    once: bool = False

    def calls(self, kind: str, width: int) -> int:
        """The most calls that a job of this kind and width takes, but for faults."""
        sampling = 0 if kind == "judge" else self.policy.calls(width)
        return sampling + (self.value.calls(width) if kind == "judge" or not self.later else 0)

    def growth(self, branch: Branch, known: Mapping[str, TreeNode], failed: set[str]) -> "Growth":
        """How a job is carried out."""
        return Growth(self, branch, known, failed)


class Growth:
    """One job.

    Args:
        search: What is searched with.
        branch: Where.
        known: The first node of each state of the world, with its grade: states that are the same share it.
        failed: Answers that have a reflection already.
    """

    def __init__(self, search: Search, branch: Branch, known: Mapping[str, TreeNode], failed: set[str]) -> None:
        self.search, self.branch, self.known, self.failed = search, branch, known, failed
        self.step, self.world, self.value = search.step, search.world, search.value
        self.grown = Grown()
        self._candidates: dict[str, Candidate] = {}
        self._states: dict[str, Candidate] = {}

    async def run(self) -> Grown:
        """Sample candidates and see each to its grade.

        Returns:
            The distinct candidates as children, in the order of their samples. One without a score could not be graded:
            `stops` says why. A job that judges gives the nodes that it has graded.
        """
        if self.branch.judged:
            return await self._judge()
        width = self.branch.job["width"]
        await self._unless_stopped(self.search.policy.sample, self.branch, width, self._follow)
        candidates = sorted(self._candidates.values(), key=lambda candidate: candidate.index)
        if not self.search.later:
            await self._unless_stopped(self.value.compare, self.branch, candidates)
        self.grown.fruitless = not any(candidate.grade or self.search.later for candidate in candidates)
        self.grown.children = [self._child(candidate, i) for i, candidate in enumerate(candidates)]
        nodes = [child.node for child in self.grown.children]
        if self.search.max_lessons and not any(node["solved"] for node in nodes):
            lessons = await at_once([self._reflect(*one) for one in zip(candidates, nodes, strict=True)])
            self.grown.lessons = [lesson for lesson in lessons if lesson]
        return self.grown

    async def _judge(self) -> Grown:
        nodes = [steps[-1] for steps in self.branch.judged]
        candidates = [standing(i, steps) for i, steps in enumerate(self.branch.judged)]
        await at_once([self._unless_stopped(self._rate, candidate) for candidate in candidates])
        await self._unless_stopped(self.value.compare, self.branch, candidates)
        for node, candidate in zip(nodes, candidates, strict=True):
            if candidate.grade:
                self.grown.children.append(self._as_child(judged(node, candidate.grade), candidate))
        self.grown.fruitless = not self.grown.children
        return self.grown

    async def _unless_stopped(self, work: Callable[..., Awaitable[None]], *args: Any) -> None:
        try:
            await work(*args)
        except (LimitReached, ModelFailed) as stop:
            self.grown.stops.append(stop)

    async def _follow(self, candidates: Sequence[Candidate]) -> None:
        """Let candidates act and be graded; what comes to the same is merged first.

        Of a list that is longer than what was asked for, those are taken that can be carried out and stand in it most
        often, and then the first.
        """
        fresh = [candidate for candidate in candidates if not self._merged(self.world.same(candidate), candidate)]
        width = self.branch.job["width"]
        if len(fresh) <= width:
            await at_once([self._unless_stopped(self._see_through, candidate) for candidate in fresh])
            return
        acted = await at_once([self._act(candidate) for candidate in fresh])
        able = [candidate for candidate, possible in zip(fresh, acted, strict=True) if possible]
        able.sort(key=lambda candidate: (-candidate.samples, candidate.index))
        for candidate in able[width:]:
            self._drop(candidate)
        await at_once([self._unless_stopped(self._rate, candidate) for candidate in able[:width]])

    def _merged(self, key: str, candidate: Candidate) -> bool:
        twin = self._candidates.get(key)
        if twin is None:
            self._candidates[key] = candidate
            return False
        self._merge(twin, candidate)
        return True

    def _merge(self, twin: Candidate, candidate: Candidate) -> None:
        twin.samples += candidate.samples
        twin.index = min(twin.index, candidate.index)
        if candidate.action not in (twin.action, *twin.otherwise):
            twin.otherwise.append(candidate.action)
        self.grown.merged += 1
        self.step.emit("merged", index=candidate.index)

    async def _see_through(self, candidate: Candidate) -> None:
        if await self._act(candidate):
            await self._rate(candidate)

    async def _act(self, candidate: Candidate) -> bool:
        """Let a candidate act; False if it is refused, or has come where a sibling is already."""
        while why := await self.world.act(candidate, self.branch.path):
            self.step.emit("refused", action=candidate.action, why=why)
            if not candidate.otherwise:
                self.grown.refused += [why] * candidate.samples
                self._drop(candidate)
                return False
            candidate.action = candidate.otherwise.pop(0)
        key = self.world.key(candidate)
        if self.search.once and key in self.known:
            self._drop(candidate)
            self.grown.merged += 1
            return False
        twin = self._states.setdefault(key, candidate) if key else candidate
        if twin is not candidate:
            self._drop(candidate)
            self._merge(twin, candidate)
        return twin is candidate

    async def _rate(self, candidate: Candidate) -> None:
        if self.search.later and candidate.reward is None and not self.branch.judged:
            return
        candidate.grade = await self._grade(candidate, self.world.key(candidate) or self._here(candidate))

    def _here(self, candidate: Candidate) -> str:
        """What names a step among the children of its place, where these are made one by one; else empty."""
        job = self.branch.job
        if "arm" not in job:
            return ""
        said = self.world.key(candidate) or self.world.same(candidate)
        return f"{job['node']} {sha256(said.encode()).hexdigest()[:16]}"

    def _drop(self, candidate: Candidate) -> None:
        self._candidates = {key: kept for key, kept in self._candidates.items() if kept is not candidate}

    async def _grade(self, candidate: Candidate, key: str) -> Grade | None:
        """The environment's reward, else what an equal state was graded, else what the value says."""
        if candidate.reward is not None:
            solved = candidate.done and candidate.reward >= 1
            return Grade(candidate.reward, solved=solved, terms={"reward": candidate.reward})
        if not key:
            return await self.value.grade(self.branch, candidate)
        if (node := self.known.get(key)) and node["score"] is not None:
            self.step.emit("shared", with_node=node["id"])
            terms = dict(node.get("terms", {}))
            return Grade(terms.get("judge", node["score"]), node["critique"], node["solved"], terms)
        memo = memo_of(self.search.run_id)
        grade, _ = await memo.once(("grade", key), lambda: self.value.grade(self.branch, candidate))
        return grade and Grade(grade.score, grade.critique, grade.solved, dict(grade.terms))

    def _child(self, candidate: Candidate, place: int) -> Child:
        leaf = self.branch.job["node"]
        node_id = ROOT if leaf is None else f"{leaf}.{self.branch.job['first'] + place}"
        node = candidate.as_node(node_id, leaf, self.branch.job.get("arm", ""))
        return self._as_child(node, candidate)

    def _as_child(self, node: TreeNode, candidate: Candidate) -> Child:
        key, here = self.world.key(candidate), self._here(candidate)
        if candidate.grade:
            self.grown.keys |= {name: node["id"] for name in (key, here) if name}
        expandable = may_be_expanded(node, self.step.context, self.search.revise)
        seen = self.search.once and key in self.known and self.known[key]["id"] != node["id"]
        return Child(node, expandable and not seen, here or key)

    async def _reflect(self, candidate: Candidate, node: TreeNode) -> Lesson | None:
        """Draw a lesson from a trajectory that has failed, once for each answer and within bounds. One that ended
        without an answer is known by the state that it ended in."""
        failed = node["score"] is not None and (candidate.final or candidate.reward is not None)
        answer = self.world.answer(node) or self.world.key(candidate) if failed else ""
        if not answer or answer in self.failed or len(self.failed) >= self.search.max_lessons:
            return None
        self.failed.add(answer)
        text = trajectory_text([*self.branch.path, candidate])
        verdict = f"score: {node['score']}\n{node['critique']}".strip()
        prompt = prompts.REFLECT.format_messages(
            request=self.branch.request,
            trajectory=quoted("trajectory", text),
            verdict=quoted("verdict", verdict),
        )
        try:
            lesson = (await complete(self.step, self.step.context.model, prompt)).strip()
        except (LimitReached, ModelFailed) as stop:
            self.grown.stops.append(stop)
            return None
        return Lesson(node=node["id"], answer=answer, text=lesson)


def may_be_expanded(node: TreeNode, context: TreeContext, revise: bool) -> bool:
    """Whether a node may be expanded: not if it is solved or too deep, the task has ended, or it is an answer that is
    not to be revised."""
    if node["solved"] or node.get("done") or node["depth"] >= context.max_depth:
        return False
    return node["kind"] != "answer" or revise
