"""Carrying out one visit of a tree search that plans: the state that a step leads to is predicted, and then the steps
that may follow are proposed, but not yet where those lead to."""

from collections.abc import Sequence
from dataclasses import replace

from reflective_agents.graphs._rap.world_model import IMPOSSIBLE, WorldModel, digest
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.state.tree import TreeNode
from reflective_agents.tree_search.base import Child
from reflective_agents.tree_search.candidates import Branch, Candidate, Grade
from reflective_agents.tree_search.job import ExpansionJob, NodeByState, TreeSearch, verified
from reflective_agents.tree_search.job_result import JobResult


class PlanningJob(ExpansionJob):
    """One visit. The node itself comes back completed, and its children with nothing but their actions and what those
    promise.

    Args:
        world: Where the steps lead to.
        search, branch, node_by_state: As `ExpansionJob`.
    """

    def __init__(self, world: WorldModel, search: TreeSearch, branch: Branch, node_by_state: NodeByState) -> None:
        super().__init__(search, branch, node_by_state)
        self.world: WorldModel = world

    async def run(self) -> JobResult:
        """Predict, and go on from there unless the path ends.

        Returns:
            The node, unless it could not be predicted (`stops` says why), and its children; those without a promise are
            not expandable.
        """
        *before, node = self.branch.path
        if node["kind"] == "root":
            await self._look_ahead([node])
            return self.result
        with self.recording_stops():
            await self._arrive(node, before)
        self.result.fruitless = not self.result.children
        if self.result.children and self.result.children[0].expandable:
            await self._look_ahead([*before, self.result.children[0].node])
        return self.result

    async def _arrive(self, node: TreeNode, before: Sequence[TreeNode]) -> None:
        """Predict where a step leads to, and reward it: r = r0 ** alpha * r1 ** (1 - alpha)."""
        candidate = Candidate(0, action=node.get("action", ""), samples=node.get("samples", 1))
        if node["score"] is not None:
            candidate.terms["r0"] = node["score"]  # a person's, where its usefulness is not known
        candidate.terms |= node.get("terms", {})
        same = digest(f"{self.world.state_key(before)} {self.world.canonical(candidate)}")
        earlier = self.node_by_state(same)
        why = self._taken_over(candidate, earlier) if earlier else await self.world.act(candidate, before)
        ended = why is not None or candidate.final or node["depth"] >= self.step.context.max_depth
        if not ended:
            path = [*before, candidate.as_node(node["id"], node["parent_id"])]
            if self.world.turns_back(path):
                ended = True
                why = "It leads back to where the path has been."
            else:
                self.result.keys[self.world.state_key(path)] = node["id"]
        if ended:
            why = why or await self.world.close(candidate, before)
        if candidate.state is None:
            self.result.keys[same] = node["id"]
        candidate.done = ended
        candidate.verdict = await self.verdict_on(candidate) if ended else None
        candidate.grade = self._graded(candidate, why)
        key = self._first_with(self.world.key(candidate), node) if candidate.reward is None else ""
        self.result.children.append(Child(candidate.as_node(node["id"], node["parent_id"]), not ended, key))

    async def evidence_of(self, candidate: Candidate) -> Evidence:
        """Return what was looked up for the sub-questions of the path."""
        return Evidence(await self.world.found(self.branch.path[:-1]))

    def _first_with(self, answer: str, node: TreeNode) -> str:
        """Return the node that was the first to give an answer."""
        if not answer:
            return ""
        if first := self.node_by_state(answer):
            return first["id"]
        self.result.keys[answer] = node["id"]
        return node["id"]

    def _graded(self, candidate: Candidate, why: str | None) -> Grade:
        """Grade a step: 0 if it leads nowhere, by the verifiers, and by the reward of the environment if there is
        one."""
        if candidate.verdict and candidate.verdict.score is not None:
            return verified(candidate, candidate.verdict, candidate.verdict.score)
        if candidate.reward is not None:
            return Grade(candidate.reward, why or "", candidate.solves, {"reward": candidate.reward})
        if why:
            return Grade(0.0, why)
        alpha = self.world.step.context.alpha
        return Grade(candidate.terms["r0"] ** alpha * candidate.terms["r1"] ** (1 - alpha))

    def _taken_over(self, candidate: Candidate, earlier: TreeNode) -> str | None:
        """Take over what was predicted, and why the step is not possible, if it is not."""
        candidate.observation = earlier.get("observation", "")
        candidate.terms["r1"] = earlier.get("terms", {})["r1"]
        candidate.final = earlier["kind"] == "answer"
        self.step.emit("shared", with_node=earlier["id"])
        return IMPOSSIBLE if earlier["critique"] == IMPOSSIBLE else None

    def _below(self, path: Sequence[TreeNode]) -> list[TreeNode]:
        """Return the steps that were proposed where another path has come to the same state first."""
        first = self.node_by_state(self.world.state_key(path))
        if first is None or first["id"] == path[-1]["id"]:
            return []
        steps: list[TreeNode] = []
        while (step := self.branch.tree.get(f"{first['id']}.{len(steps)}")) is not None:
            steps.append(step)
        return steps

    async def _look_ahead(self, path: Sequence[TreeNode]) -> None:
        """Propose the steps that may follow: where only one may, that one; where another path has been, the same."""
        node = path[-1]
        if node["kind"] == "root" and (key := self.world.state_key(path)):
            self.result.keys[key] = node["id"]
        branch = replace(self.branch, path=path)
        last = [Candidate(0, action=self.world.last, terms={"r0": 1.0})] if self.world.last else []
        steps = last if len(path) >= self.step.context.max_depth else self._proposed_before(path)
        if not steps:
            with self.recording_stops():
                await self.search.policy.sample(branch, branch.job["width"], self._follow)
            steps = self._best(branch.job["width"])
            with self.recording_stops():
                await self.value.compare(branch, steps)
        if not steps and not self.result.stops:
            steps = last
        for i, step in enumerate(steps):
            child = step.as_node(f"{node['id']}.{i}", node["id"])
            self.result.children.append(Child(child, "r0" in step.terms))
        self.result.fruitless = not any("r0" in step.terms for step in steps)

    def _proposed_before(self, path: Sequence[TreeNode]) -> list[Candidate]:
        twins = [node for node in self._below(path) if "r0" in node.get("terms", {})]
        if any(node["depth"] >= self.step.context.max_depth for node in twins):
            return []
        if twins:
            self.step.emit("shared", with_node=twins[0]["parent_id"])
        proposed: list[Candidate] = []
        for i, node in enumerate(twins):
            r0 = node.get("terms", {})["r0"]
            proposed.append(Candidate(i, action=node.get("action", ""), terms={"r0": r0}))
        return proposed

    async def _follow(self, candidates: Sequence[Candidate]) -> None:
        """Take the steps in; what comes to the same is merged, and what was done on the way is left out."""
        for candidate in candidates:
            candidate.action = self.world.clean(candidate.action)
            why = ""
            if not candidate.action:
                why = "there is no step in it"
            elif self.world.repeats(candidate, self.branch.path):
                why = "this step was taken on the way here"
            if why:
                self.step.emit("refused", action=candidate.action, why=why)
                self.result.refused += [why] * candidate.samples
                continue
            key = self.world.canonical(candidate)
            if self.merge_twin(key, candidate) and "r0" in candidate.terms:
                terms = self._candidates[key].terms
                terms["r0"] = max(candidate.terms["r0"], terms.get("r0", 0.0))

    def _best(self, width: int) -> list[Candidate]:
        """Return those that were proposed most often, the likeliest first; in the order in which they were proposed."""
        steps = list(self._candidates.values())
        steps.sort(key=lambda step: (-step.samples, -step.terms.get("r0", 0.0), step.index))
        return sorted(steps[:width], key=lambda step: step.index)
