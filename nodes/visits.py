"""Carrying out one visit of a search that plans: the state that a step leads to is predicted, and then the steps that
may follow are thought of, but not yet where those lead to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nodes.candidates import Branch, Candidate, Grade
from nodes.growth import Grown, Growth, Search
from nodes.world_model import IMPOSSIBLE, WorldModel, digest
from search.base import Child
from state.tree import TreeNode


@dataclass
class Planning(Search):
    """A search whose world is thought of."""

    world: WorldModel

    def calls(self, kind: str, width: int) -> int:
        """A prediction, and then the steps that may follow with what they promise."""
        return self.world.calls + self.policy.calls(width) + self.value.calls(width)

    def growth(self, branch: Branch, known: Mapping[str, TreeNode], failed: set[str]) -> Growth:
        """A visit."""
        return Visit(self, branch, known, failed)


class Visit(Growth):
    """One visit. The node itself comes back completed, and its children with nothing but their actions and what those
    promise."""

    search: Planning
    world: WorldModel

    async def run(self) -> Grown:
        """Predict, and go on from there unless the path ends.

        Returns:
            The node, unless it could not be predicted (`stops` says why), and its children; those without a promise are
            not expandable.
        """
        *before, node = self.branch.path
        if node["kind"] == "root":
            await self._look_ahead([node])
            return self.grown
        await self._unless_stopped(self._arrive, node, before)
        self.grown.fruitless = not self.grown.children
        if self.grown.children and self.grown.children[0].expandable:
            await self._look_ahead([*before, self.grown.children[0].node])
        return self.grown

    async def _arrive(self, node: TreeNode, before: Sequence[TreeNode]) -> None:
        """Predict where a step leads to, and reward it: r = r0 ** alpha * r1 ** (1 - alpha)."""
        candidate = Candidate(0, action=node["action"], terms=dict(node["terms"]), samples=node.get("samples", 1))
        same = digest(f"{self.world.place(before)} {self.world.same(candidate)}")
        earlier = self.known.get(same)
        why = self._taken_over(candidate, earlier) if earlier else await self.world.act(candidate, before)
        ended = why is not None or candidate.final or node["depth"] >= self.step.context.max_depth
        if not ended:
            path = [*before, candidate.as_node(node["id"], node["parent_id"])]
            ended = self.world.turns_back(path)
            why = "It leads back to where the path has been." if ended else None
            self.grown.keys.update({} if ended else {self.world.place(path): node["id"]})
        if ended:
            why = why or await self.world.close(candidate, before)
        if candidate.state is None:
            self.grown.keys[same] = node["id"]
        candidate.done = ended
        candidate.grade = self._graded(candidate, why)
        key = self._first_with(self.world.key(candidate), node) if candidate.reward is None else ""
        self.grown.children.append(Child(candidate.as_node(node["id"], node["parent_id"]), not ended, key))

    def _first_with(self, answer: str, node: TreeNode) -> str:
        """The node that was the first to give an answer."""
        if answer and answer not in self.known:
            self.grown.keys[answer] = node["id"]
        return self.known.get(answer, node)["id"] if answer else ""

    def _graded(self, candidate: Candidate, why: str | None) -> Grade:
        """What a step is worth: nothing if it leads nowhere, and what the environment gives if it gives anything."""
        if candidate.reward is not None:
            return Grade(candidate.reward, why or "", candidate.reward >= 1, {"reward": candidate.reward})
        alpha, terms = self.step.context.alpha, candidate.terms
        return Grade(0.0 if why else terms["r0"] ** alpha * terms["r1"] ** (1 - alpha), why or "")

    def _taken_over(self, candidate: Candidate, earlier: TreeNode) -> str | None:
        """Take over what was predicted, and why the step is not possible, if it is not."""
        candidate.observation, candidate.terms["r1"] = earlier["observation"], earlier["terms"]["r1"]
        candidate.final = earlier["kind"] == "answer"
        self.step.emit("shared", with_node=earlier["id"])
        return IMPOSSIBLE if earlier["critique"] == IMPOSSIBLE else None

    def _below(self, path: Sequence[TreeNode]) -> list[TreeNode]:
        """The steps that were thought of where another path has come to the same state first."""
        first = self.known.get(self.world.place(path))
        if first is None or first["id"] == path[-1]["id"]:
            return []
        tree, count = self.branch.tree, 0
        while f"{first['id']}.{count}" in tree:
            count += 1
        return [tree[f"{first['id']}.{place}"] for place in range(count)]

    async def _look_ahead(self, path: Sequence[TreeNode]) -> None:
        """Think of the steps that may follow: where only one may, that one; where another path has been, the same."""
        if path[-1]["kind"] == "root" and (place := self.world.place(path)):
            self.grown.keys[place] = path[-1]["id"]
        branch = replace(self.branch, path=path)
        last = [Candidate(0, action=self.world.last, terms={"r0": 1.0})] if self.world.last else []
        found = last if len(path) >= self.step.context.max_depth else self._thought_of(path)
        if not found:
            await self._unless_stopped(self.search.policy.sample, branch, branch.job["width"], self._follow)
            found = self._best(branch.job["width"])
            await self._unless_stopped(self.value.compare, branch, found)
        if not found and not self.grown.stops:
            found = last
        self.grown.children += [self._step(path[-1], i, step) for i, step in enumerate(found)]
        self.grown.fruitless = not any("r0" in candidate.terms for candidate in found)

    def _thought_of(self, path: Sequence[TreeNode]) -> list[Candidate]:
        twins = [node for node in self._below(path) if "r0" in node.get("terms", {})]
        if any(node["depth"] >= self.step.context.max_depth for node in twins):
            return []
        if twins:
            self.step.emit("shared", with_node=twins[0]["parent_id"])
        return [Candidate(i, action=node["action"], terms={"r0": node["terms"]["r0"]}) for i, node in enumerate(twins)]

    async def _follow(self, candidates: Sequence[Candidate]) -> None:
        """Take the steps in; what comes to the same is merged, and what was done on the way is left out."""
        for candidate in candidates:
            candidate.action = self.world.clean(candidate.action)
            if not candidate.action or self.world.repeats(candidate, self.branch.path):
                why = "this step was taken on the way here" if candidate.action else "there is no step in it"
                self.step.emit("refused", action=candidate.action, why=why)
                self.grown.refused += [why] * candidate.samples
                continue
            key = self.world.same(candidate)
            if self._merged(key, candidate) and "r0" in candidate.terms:
                terms = self._candidates[key].terms
                terms["r0"] = max(candidate.terms["r0"], terms.get("r0", 0.0))

    def _best(self, width: int) -> list[Candidate]:
        """Those that were proposed most often, the likeliest first; in the order in which they were proposed."""
        found = list(self._candidates.values())
        found.sort(key=lambda one: (-one.samples, -one.terms.get("r0", 0.0), one.index))
        return sorted(found[:width], key=lambda one: one.index)

    def _step(self, parent: TreeNode, i: int, candidate: Candidate) -> Child:
        return Child(candidate.as_node(f"{parent['id']}.{i}", parent["id"]), "r0" in candidate.terms)
