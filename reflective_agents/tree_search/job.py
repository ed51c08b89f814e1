"""Carrying out one job of a tree search: candidates are sampled, act and are evaluated, each flowing on its own."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import ParamSpec

from reflective_agents.nodes.memo import at_once, memo_of
from reflective_agents.nodes.step import Step
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.families import TreeContext
from reflective_agents.state.tree import Lesson, TreeNode
from reflective_agents.tree_search.base import Algorithm, Child, Job
from reflective_agents.tree_search.candidates import Branch, Candidate, Grade, graded
from reflective_agents.tree_search.places import ROOT
from reflective_agents.tree_search.policies import Policy
from reflective_agents.tree_search.values import Value
from reflective_agents.tree_search.worlds import World

P = ParamSpec("P")
REASONS = 3
"""Reasons of refusals that a model is told at once."""
Stop = LimitReached | ModelFailed
FirstIn = Callable[[str], TreeNode | None]


@dataclass
class JobResult:
    """What came of a job: the children, what was learned from those that failed, and what has stopped some of them.

    `keys` says which node was the first in a state of the world, `refused` why steps could not be carried out, and
    `fruitless` whether nothing has come that the tree search could go on with. `calls` and `tokens` are its cost.
    """

    children: list[Child] = field(default_factory=list)
    lessons: list[Lesson] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    stops: list[Stop] = field(default_factory=list)
    merged: int = 0
    refused: list[str] = field(default_factory=list)
    fruitless: bool = False
    calls: int = 0
    tokens: int = 0


@dataclass
class TreeSearch:
    """What a strategy consists of: an algorithm, a world, a policy and a value, which know nothing of each other.

    Attributes:
        step: The node that searches.
        run_id: The run, in which equal states share their grades.
        algorithm: What to expand next, and what is learned from it.
        world: What a step does.
        policy: How next steps are proposed.
        value: How a state is graded that no environment has rewarded.
        revise_answers: Whether an answer may be expanded into better ones.
        sample_root: Whether the root is a first step, sampled and graded, instead of the bare task.
        grade_in_own_job: Whether children are graded by jobs of their own.
        skip_known_states: Whether to leave out states of the world that were graded before, wherever in the tree.
        job: Carries out one job.
        further_calls: Calls that a job takes beside those of policy and value.
    """

    step: Step[TreeContext]
    run_id: str
    algorithm: Algorithm
    world: World
    policy: Policy
    value: Value
    revise_answers: bool = False
    sample_root: bool = False
    grade_in_own_job: bool = False
    skip_known_states: bool = False
    job: "Callable[[TreeSearch, Branch, FirstIn], ExpansionJob]" = lambda *place: ExpansionJob(*place)
    further_calls: int = 0

    def calls(self, job: Job, width: int) -> int:
        """Return the most calls that a job takes at this width, not counting faults."""
        if job["kind"] == "judge":
            return self.value.calls(width)
        grading = 0 if self.grade_in_own_job else self.value.calls(width)
        return self.further_calls + self.policy.calls(width) + grading

    def may_be_expanded(self, node: TreeNode) -> bool:
        """Return whether a node may be expanded: not if it is solved or too deep, the task has ended, or it is an
        answer that is not to be revised."""
        if node["solved"] or node.get("done") or node["depth"] >= self.step.context.max_depth:
            return False
        return node["kind"] != "answer" or self.revise_answers


class ExpansionJob:
    """One job: the children of a node are made, or nodes that are there already are judged.

    Args:
        search: What is searched with.
        branch: Where.
        first_in: Gives the first node in a state of the world, by its key: states that are the same share its grade.
    """

    def __init__(self, search: TreeSearch, branch: Branch, first_in: FirstIn) -> None:
        self.search, self.branch, self.first_in = search, branch, first_in
        self.step, self.world, self.value = search.step, search.world, search.value
        self.result = JobResult()
        self._candidates: dict[str, Candidate] = {}
        self._states: dict[str, Candidate] = {}

    async def run(self) -> JobResult:
        """Run the job."""
        if self.branch.judged:
            return await self.judge()
        candidates = await self.expand()
        await self.evaluate(candidates)
        return self.add_children(candidates)

    async def expand(self) -> list[Candidate]:
        """Sample candidates and let each act; it is graded as soon as it has acted. If all are refused at the
        beginning, the model is told why, and asked once more.

        Returns:
            The distinct candidates, in the order of their samples; one that solves the task stands first.
        """
        width = self.branch.job["width"]
        await self.unless_stopped(self.search.policy.sample, self.branch, width, self._follow)
        if not self._candidates and not self.result.stops and self._may_ask_again():
            told = replace(self.branch, refused=[*dict.fromkeys(self.result.refused)][:REASONS])
            await self.unless_stopped(self.search.policy.sample, told, width, self._follow)
        return sorted(self._candidates.values(), key=lambda candidate: (not candidate.solves, candidate.index))

    def _may_ask_again(self) -> bool:
        """Return whether no step was ever possible, and there are calls left beside those that are kept. Where some
        were, this is a dead end, to which the search has an answer of its own."""
        calls = self.search.calls(self.branch.job, self.branch.job["width"])
        room = self.step.meter.calls_left >= calls + self.branch.keep
        first = all(node["kind"] == "root" for node in self.branch.tree.values())
        return room and first and bool(self.result.refused)

    async def evaluate(self, candidates: Sequence[Candidate]) -> None:
        """Complete the grades, now that all siblings are there, unless one has solved the task."""
        if not self._solved and not self.search.grade_in_own_job:
            await self.unless_stopped(self.value.compare, self.branch, candidates)

    def add_children(self, candidates: Sequence[Candidate]) -> JobResult:
        """Make candidates children. One without a score could not be graded: `stops` says why."""
        self.result.fruitless = not any(candidate.grade or self.search.grade_in_own_job for candidate in candidates)
        self.result.children = [self._child(candidate, i) for i, candidate in enumerate(candidates)]
        return self.result

    async def judge(self) -> JobResult:
        """Judge nodes that are there already; those that could not be graded are left out."""
        candidates = [Candidate.again(i, steps) for i, steps in enumerate(self.branch.judged)]
        await at_once([self.unless_stopped(self._grade, candidate) for candidate in candidates])
        await self.unless_stopped(self.value.compare, self.branch, candidates)
        for steps, candidate in zip(self.branch.judged, candidates, strict=True):
            if candidate.grade:
                self.result.children.append(self._as_child(graded(steps[-1], candidate.grade), candidate))
        self.result.fruitless = not self.result.children
        return self.result

    async def unless_stopped(self, work: Callable[P, Awaitable[None]], *args: P.args, **named: P.kwargs) -> None:
        """Await some work; a limit or a model that fails stops it, and nothing else."""
        try:
            await work(*args, **named)
        except (LimitReached, ModelFailed) as stop:
            self.result.stops.append(stop)

    async def _follow(self, candidates: Sequence[Candidate]) -> None:
        """Let candidates act and be graded; equal ones are merged first. Where steps are rewarded, none is graded
        before all have acted, for one may solve the task.

        Of a list that is longer than what was asked for, those are taken that can be carried out: one that solves the
        task, those that stand in it most often, and then the first.
        """
        fresh = [candidate for candidate in candidates if not self.merged(self.world.same(candidate), candidate)]
        width = self.branch.job["width"]
        if len(fresh) <= width and not self.world.rewards:
            await at_once([self.unless_stopped(self._act_and_grade, candidate) for candidate in fresh])
            return
        acted = await at_once([self._act(candidate) for candidate in fresh])
        able = [candidate for candidate, possible in zip(fresh, acted, strict=True) if possible]
        able.sort(key=lambda candidate: (not candidate.solves, -candidate.samples, candidate.index))
        for candidate in able[width:]:
            self._drop(candidate)
        await at_once([self.unless_stopped(self._grade_now, candidate) for candidate in able[:width]])

    def merged(self, key: str, candidate: Candidate) -> bool:
        """Merge a candidate into the one with the same key, if there is one."""
        twin = self._candidates.setdefault(key, candidate)
        if twin is not candidate:
            self._merge(twin, candidate)
        return twin is not candidate

    def _merge(self, twin: Candidate, candidate: Candidate) -> None:
        twin.samples += candidate.samples
        twin.index = min(twin.index, candidate.index)
        if candidate.action not in (twin.action, *twin.otherwise):
            twin.otherwise.append(candidate.action)
        self.result.merged += 1
        self.step.emit("merged", index=candidate.index)

    async def _act_and_grade(self, candidate: Candidate) -> None:
        if await self._act(candidate):
            await self._grade_now(candidate)

    async def _act(self, candidate: Candidate) -> bool:
        """Let a candidate act; False if it is refused, or has come where a sibling is already."""
        while why := await self.world.act(candidate, self.branch.path):
            self.step.emit("refused", action=candidate.action, why=why)
            if not candidate.otherwise:
                self.result.refused += [why] * candidate.samples
                self._drop(candidate)
                return False
            candidate.action = candidate.otherwise.pop(0)
        key = self.state_of(candidate)
        if self.search.skip_known_states and self.first_in(key):
            self._drop(candidate)
            self.result.merged += 1
            return False
        twin = self._states.setdefault(key, candidate) if key else candidate
        if twin is not candidate:
            self._drop(candidate)
            self._merge(twin, candidate)
        return twin is candidate

    def state_of(self, candidate: Candidate) -> str:
        """Return what siblings have in common that have come to the same state; empty if none does."""
        return self.world.key(candidate)

    def _drop(self, candidate: Candidate) -> None:
        self._candidates = {key: kept for key, kept in self._candidates.items() if kept is not candidate}

    async def _grade_now(self, candidate: Candidate) -> None:
        if candidate.reward is not None or not self.search.grade_in_own_job:
            await self._grade(candidate)

    async def _grade(self, candidate: Candidate) -> None:
        """Grade by the environment's reward, else as an equal state was graded, else by the value; only by the reward
        once a sibling has solved the task."""
        key = self.world.key(candidate) or self._among_siblings(candidate)
        if candidate.reward is not None:
            candidate.grade = Grade(candidate.reward, solved=candidate.solves, terms={"reward": candidate.reward})
        elif self._solved:
            return
        elif not key:
            candidate.grade = await self.value.grade(self.branch, candidate)
        elif (node := self.first_in(key)) and node["score"] is not None:
            self.step.emit("shared", with_node=node["id"])
            terms = dict(node.get("terms", {}))
            candidate.grade = Grade(terms.get("judge", node["score"]), node["critique"], node["solved"], terms)
        else:
            memo = memo_of(self.search.run_id)
            grade, _ = await memo.once(("grade", key), lambda: self.value.grade(self.branch, candidate))
            candidate.grade = grade and Grade(grade.score, grade.critique, grade.solved, dict(grade.terms))

    @property
    def _solved(self) -> bool:
        return any(candidate.solves for candidate in self._candidates.values())

    def _among_siblings(self, candidate: Candidate) -> str:
        """Return what names a step among the children of its node, where these are made one by one; else empty."""
        job = self.branch.job
        if "arm" not in job:
            return ""
        said = self.world.key(candidate) or self.world.same(candidate)
        return f"{job['node']} {sha256(said.encode()).hexdigest()[:16]}"

    def _child(self, candidate: Candidate, place: int) -> Child:
        job = self.branch.job
        node_id = f"{job['node']}.{job['first'] + place}" if job["node"] else ROOT
        return self._as_child(candidate.as_node(node_id, job["node"] or None, job.get("arm", "")), candidate)

    def _as_child(self, node: TreeNode, candidate: Candidate) -> Child:
        key, sibling_key = self.world.key(candidate), self._among_siblings(candidate)
        if candidate.grade:
            self.result.keys |= {name: node["id"] for name in (key, sibling_key) if name}
        first = self.first_in(key) if self.search.skip_known_states else None
        seen = first is not None and first["id"] != node["id"]
        return Child(node, self.search.may_be_expanded(node) and not seen, sibling_key or key)
