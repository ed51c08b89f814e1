"""One job of a tree search: candidates are sampled, carried out and graded, each as soon as it can be."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import compress

from reflective_agents.nodes.evidence.sources import observations_on, sources_of, thread_sources
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.memo import at_once, memo_of
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.verdict import Verdict, is_verified, verify_answer
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.families import TreeContext
from reflective_agents.state.tree import TreeNode
from reflective_agents.tree_search.base import Algorithm, Child, Job
from reflective_agents.tree_search.candidates import VERIFIERS, Branch, Candidate, Grade, graded
from reflective_agents.tree_search.job_result import JobResult
from reflective_agents.tree_search.policy import Policy
from reflective_agents.tree_search.tree_paths import ROOT
from reflective_agents.tree_search.values import StepReward, Value
from reflective_agents.tree_search.worlds import World

REASONS = 3
"""Most reasons of refusals that a prompt lists."""
NodeByState = Callable[[str], TreeNode | None]
"""Finds the first node in a state, by the state's key: equal states share a grade."""


@dataclass
class TreeSearch:
    """The parts of a strategy: an algorithm, a world, a policy and a value, which know nothing of each other.

    Attributes:
        step: The step of the graph that searches.
        run_id: The run, in which equal states share their grades.
        algorithm: Chooses what to expand next, and learns from the results.
        world: Carries out steps.
        policy: Proposes next steps.
        value: Grades states that no environment has rewarded.
        revise_answers: Whether an answer may be expanded into better ones.
        sample_root: Whether the root is a first step, sampled and graded, instead of the bare task.
        grade_in_own_job: Whether children are graded by jobs of their own.
        skip_known_states: Whether to drop states that were graded before, anywhere in the tree.
        equal_answers_once: Whether an answer to an open question that was given before in another branch is neither
            judged nor expanded again; not where a judge compares all candidates of a level.
        expand_from: Lowest score of a node that may be expanded, unless it is the root.
        job: Carries out one job.
        further_calls: Model calls of a job, beside those of policy and value.
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
    equal_answers_once: bool = True
    expand_from: float = 0.0
    job: "Callable[[TreeSearch, Branch, NodeByState], ExpansionJob]" = lambda *args: ExpansionJob(*args)
    further_calls: int = 0

    def __post_init__(self) -> None:
        """Let a process reward of the user's grade the steps on the way to an answer."""
        if reward := self.step.context.process_reward:
            self.value = StepReward(self.step, reward, self.value)

    def calls(self, job: Job, width: int) -> int:
        """Return the most model calls that a job makes at this width, without retries after faults."""
        verifying = self.step.context.verifying_calls * width  # of an answer, in place of the judge
        if job["kind"] == "judge":
            return max(self.value.calls(width), verifying)
        grading = 0 if self.grade_in_own_job else max(self.value.calls(width), verifying)
        return self.further_calls + self.policy.calls(width) + grading

    def may_be_expanded(self, node: TreeNode) -> bool:
        """Return whether a node may be expanded: unless it is solved or too deep, its score is too low, its task has
        ended, or it is an answer that is not to be revised."""
        if node["depth"] and (node["score"] or 0.0) < self.expand_from:
            return False
        if node["solved"] or node.get("done") or node["depth"] >= self.step.context.max_depth:
            return False
        return node["kind"] != "answer" or self.revise_answers


class ExpansionJob:
    """One job, which makes the children of a node, or judges nodes that are there already.

    Args:
        search: The tree search.
        branch: Where in the tree to work.
        node_by_state: Finds the first node in a state.
    """

    def __init__(self, search: TreeSearch, branch: Branch, node_by_state: NodeByState) -> None:
        self.search = search
        self.branch = branch
        self.node_by_state = node_by_state
        self.step = search.step
        self.world = search.world
        self.value = search.value
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
        """Sample candidates, carry each out and grade it. If all first steps are refused, sample once more with the
        reasons in the prompt.

        Returns:
            The distinct candidates, in the order of their samples; one that solves the task comes first.
        """
        width = self.branch.job["width"]
        with self.recording_stops():
            await self.search.policy.sample(self.branch, width, self._follow)
        if not self._candidates and not self.result.stops and self._may_sample_again():
            branch = replace(self.branch, refused=[*dict.fromkeys(self.result.refused)][:REASONS])
            with self.recording_stops():
                await self.search.policy.sample(branch, width, self._follow)
        return sorted(self._candidates.values(), key=lambda candidate: (not candidate.solves, candidate.index))

    def _may_sample_again(self) -> bool:
        """Return whether no step was ever possible, and calls are left beside the reserved ones. Deeper in the tree a
        refusal is a dead end, and the search goes on elsewhere."""
        calls = self.search.calls(self.branch.job, self.branch.job["width"])
        affordable = self.step.meter.calls_left >= calls + self.branch.reserved_calls
        at_root = all(node["kind"] == "root" for node in self.branch.tree.values())
        return affordable and at_root and bool(self.result.refused)

    async def evaluate(self, candidates: Sequence[Candidate]) -> None:
        """Complete the grades, now that all siblings are there, unless one has solved the task."""
        if not self._solved and not self.search.grade_in_own_job:
            with self.recording_stops():
                await self.value.compare(self.branch, candidates)
        keep_refused_open(candidates)

    def add_children(self, candidates: Sequence[Candidate]) -> JobResult:
        """Make candidates children. One without a score could not be graded: `stops` says why."""
        job = self.branch.job
        self.result.fruitless = not any(candidate.grade or self.search.grade_in_own_job for candidate in candidates)
        for number, candidate in enumerate(candidates, job["first"]):
            node_id = f"{job['node']}.{number}" if job["node"] else ROOT
            node = candidate.as_node(node_id, job["node"] or None, job.get("arm", ""))
            self.result.children.append(self._as_child(node, candidate))
        return self.result

    async def judge(self) -> JobResult:
        """Judge nodes that are there already; those that could not be graded are left out."""
        candidates = [Candidate.from_node(i, steps) for i, steps in enumerate(self.branch.judged)]
        await at_once([self._grade(candidate) for candidate in candidates])
        with self.recording_stops():
            await self.value.compare(self.branch, candidates)
        keep_refused_open(candidates)
        for steps, candidate in zip(self.branch.judged, candidates, strict=True):
            if candidate.grade:
                self.result.children.append(self._as_child(graded(steps[-1], candidate.grade), candidate))
        self.result.fruitless = not self.result.children
        return self.result

    @contextmanager
    def recording_stops(self) -> Iterator[None]:
        """If a limit or a failing model stops the body, record that, and go on after it."""
        try:
            yield
        except (LimitReached, ModelFailed) as stop:
            self.result.stops.append(stop)

    async def _follow(self, candidates: Sequence[Candidate]) -> None:
        """Carry candidates out and grade them; equal ones are merged first. Where steps are rewarded, all act before
        any is graded, for one may solve the task.

        Of more than `width` candidates, those are kept that can be carried out: one that solves the task, then those
        proposed most often, then the first.
        """
        fresh = self._merged(candidates)
        width = self.branch.job["width"]
        if len(fresh) <= width and not self.world.rewards:
            await at_once([self._act_and_grade(candidate) for candidate in fresh])
            return
        acted = await at_once([self._act(candidate) for candidate in fresh])
        able = list(compress(fresh, acted))
        able.sort(key=lambda candidate: (not candidate.solves, -candidate.samples, candidate.index))
        for candidate in able[width:]:
            self._drop(candidate)
        await at_once([self.grade_now(candidate) for candidate in able[:width]])

    def _merged(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Merge equal candidates, and return the first of each; the first guess among them is kept."""
        guesses = [candidate.guess for candidate in candidates if candidate.guess]
        if guesses:
            self.result.guess = guesses[0]
        fresh: list[Candidate] = []
        for candidate in candidates:
            if not self.merge_twin(self.world.canonical(candidate), candidate):
                fresh.append(candidate)
        return fresh

    def merge_twin(self, key: str, candidate: Candidate) -> bool:
        """Merge a candidate into the one with the same key; False if it is the first with this key."""
        twin = self._candidates.setdefault(key, candidate)
        if twin is candidate:
            return False
        self._merge(twin, candidate)
        return True

    def _merge(self, twin: Candidate, candidate: Candidate) -> None:
        twin.samples += candidate.samples
        twin.index = min(twin.index, candidate.index)
        if candidate.action not in (twin.action, *twin.alternatives):
            twin.alternatives.append(candidate.action)
        self.result.merged += 1
        self.step.emit("merged", index=candidate.index)

    async def _act_and_grade(self, candidate: Candidate) -> None:
        with self.recording_stops():
            if await self._act(candidate):
                await self.grade_now(candidate)

    async def _act(self, candidate: Candidate) -> bool:
        """Carry a candidate out; False if it is refused, or ends in the state of another candidate."""
        while why := await self.world.act(candidate, self.branch.path):
            self.step.emit("refused", action=candidate.action, why=why)
            if not candidate.alternatives:
                self.result.refused += [why] * candidate.samples
                self._drop(candidate)
                return False
            candidate.action = candidate.alternatives.pop(0)
        candidate.verdict = await self.verdict_on(candidate)
        key = self._key(candidate)
        if self.search.skip_known_states and self.node_by_state(key):
            self._drop(candidate)
            self.result.merged += 1
            return False
        twin = self._states.setdefault(key, candidate) if key else candidate
        if twin is candidate:
            return True
        self._drop(candidate)
        self._merge(twin, candidate)
        return False

    def _drop(self, candidate: Candidate) -> None:
        self._candidates = {key: item for key, item in self._candidates.items() if item is not candidate}

    async def grade_now(self, candidate: Candidate) -> None:
        """Grade a candidate, unless a job of its own will."""
        if candidate.reward is not None or not self.search.grade_in_own_job:
            await self._grade(candidate)

    async def _grade(self, candidate: Candidate) -> None:
        """Grade by the environment's reward; else take the grade of an equal state; else ask the value. Once a sibling
        has solved the task, only the reward counts."""
        with self.recording_stops():
            candidate.grade = await self._grade_of(candidate)

    async def _grade_of(self, candidate: Candidate) -> Grade | None:
        key = self._key(candidate) or self._sibling_key(candidate)
        candidate.verdict = candidate.verdict or await self.verdict_on(candidate)
        if candidate.verdict and candidate.verdict.score is not None:
            return verified(candidate, candidate.verdict, candidate.verdict.score)
        if candidate.reward is not None:
            return Grade(candidate.reward, solved=candidate.solves, terms={"reward": candidate.reward})
        if self._solved:
            return candidate.grade
        if not key:
            return await self.value.grade(self.branch, candidate)
        node = self._graded_node(key)
        if node and node["score"] is not None:
            self.step.emit("shared", with_node=node["id"])
            # A person's score takes the place of the judge's figures.
            terms = {} if node.get("rescored") else dict(node.get("terms", {}))
            return Grade(terms.get("judge", node["score"]), node["critique"], node["solved"], terms)
        memo = memo_of(self.search.run_id)
        grade, _ = await memo.once(("grade", key), lambda: self.value.grade(self.branch, candidate))
        return grade and Grade(grade.score, grade.critique, grade.solved, dict(grade.terms))

    def _graded_node(self, key: str) -> TreeNode | None:
        """Return the node whose grade counts for a state: one that a person has scored, the last of several, else the
        first. None if nothing is known of the state."""
        first = self.node_by_state(key)
        nodes = self.branch.tree.values() if first else ()
        scored = [node for node in nodes if node.get("rescored")]
        for node in reversed(scored):
            if self._key(Candidate.from_node(0, [node])) == key:
                return node
        return first

    async def verdict_on(self, candidate: Candidate) -> Verdict | None:
        """Ask the verifiers of the user's what they say of an answer at the end of a trajectory, if there are any."""
        if not (candidate.answers and (candidate.final or candidate.done) and is_verified(self.step)):
            return None
        answer = self.world.answer(candidate.as_node("", None))
        evidence = await self.evidence_of(candidate)
        return await verify_answer(self.step, self.search.run_id, self.branch.conversation, answer, evidence.passages)

    async def evidence_of(self, candidate: Candidate) -> Evidence:
        """Return what the trajectory of an answer has looked up."""
        steps = [*self.branch.path, *candidate.before]
        return Evidence(sources_of(observations_on(steps), thread_sources(self.branch.conversation)))

    def _key(self, candidate: Candidate) -> str:
        """Return the key of a candidate's state; empty if its grade is its own."""
        return self.world.key(candidate) if self.search.equal_answers_once or self.world.rewards else ""

    @property
    def _solved(self) -> bool:
        return any(candidate.solves for candidate in self._candidates.values())

    def _sibling_key(self, candidate: Candidate) -> str:
        """Return a key for a step among its siblings, if children are made one by one; else an empty text."""
        job = self.branch.job
        if "arm" not in job:
            return ""
        key = self._key(candidate) or self.world.canonical(candidate)
        return f"{job['node']} {sha256(key.encode()).hexdigest()[:16]}"

    def _as_child(self, node: TreeNode, candidate: Candidate) -> Child:
        key = self._key(candidate)
        sibling_key = self._sibling_key(candidate)
        if candidate.grade:
            for name in filter(None, (key, sibling_key)):
                self.result.keys[name] = node["id"]
        once = self.search.skip_known_states or not self.world.rewards  # an answer to an open question
        first = self.node_by_state(key) if once and key else None
        is_known = first is not None and first["id"] != node["id"]
        return Child(node, self.search.may_be_expanded(node) and not is_known, sibling_key or key)


def verified(candidate: Candidate, verdict: Verdict, score: float) -> Grade:
    """Grade an answer by what the verifiers say of it. Where an environment rewards it too, the lower score counts, and
    both have to accept it."""
    if candidate.reward is not None:
        terms = {"reward": candidate.reward, VERIFIERS: score}
        return Grade(min(candidate.reward, score), verdict.feedback, candidate.solves, terms)
    solved = verdict.accepted is True and not candidate.unfounded
    return Grade(score, verdict.feedback, solved, {VERIFIERS: score})


def keep_refused_open(candidates: Sequence[Candidate]) -> None:
    """Let nothing count as solved that the verifiers do not let count, whatever a judge says of it."""
    for candidate in candidates:
        if candidate.grade and not candidate.is_allowed:
            candidate.grade.solved = False
