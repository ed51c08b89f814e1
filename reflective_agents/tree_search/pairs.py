"""Choosing among the answers of a tree by pairs, once the search has ended."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

from reflective_agents.nodes.asking.pairs import Ranking, rank_by_pairs
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.state.families import ChoosingContext, TreeContext
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.tree import SearchState, TreeNode, TreeView
from reflective_agents.tree_search.candidates import VERIFIERS, Branch, Candidate, Grade, trajectory_text
from reflective_agents.tree_search.graph import Node, Setup, answer
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.tree_paths import path, rank, unpruned
from reflective_agents.tree_search.values import Value

C = TypeVar("C", bound=TreeContext)
PAIRS = "pairs"
"""The term of a node that holds the score which comparisons have given its answer."""


class Unjudged(Value):
    """Gives all answers the same score, since they are compared once all are there; steps get none."""

    def calls(self, width: int) -> int:
        """Count no call."""
        return 0

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Give an answer the score of an average one."""
        return Grade(0.5) if candidate.answers else None


def finishing(schema: type[C], setup: Setup[C]) -> Node:
    """Make the node that answers with the best answer of the tree; comparisons choose it where the settings say so."""

    @node(schema)
    async def finish(state: SearchState, step: Step[C]) -> Update:
        search, context = await setup(state, step), step.context
        assert isinstance(context, ChoosingContext)
        if context.choose != PAIRS or (state["outcome"] or {}).get("status") == "solved":
            return await answer(state, step, search)
        rivals = contenders(state["tree"], search)[: context.comparisons + 1]
        is_judged = not isinstance(search.value, Unjudged)
        if len(rivals) < 2:
            alone = state.copy()
            alone["outcome"] = chosen_by(state["outcome"], "", is_judged=is_judged or not rivals)
            return await answer(alone, step, search)
        ranking = await compare(state, step, search, rivals, context.comparisons)
        scored = {each["id"]: with_score(each, score) for each, score in zip(rivals, ranking.scores, strict=True)}
        best = scored[rivals[ranking.best]["id"]]
        if VERIFIERS not in best.get("terms", {}):
            best = best.copy()
            best["score"] = max(ranking.scores)
            scored[best["id"]] = best
        chosen = state.copy()
        chosen["best"], chosen["tree"] = best["id"], {**state["tree"], best["id"]: best}
        chosen["outcome"] = chosen_by(state["outcome"], ranking.reason, is_judged=is_judged)
        return {"best": best["id"], "tree": scored} | await answer(chosen, step, search)

    return finish


def with_score(node: TreeNode, score: float) -> TreeNode:
    """Return a node with the score that comparisons give it, beside its others."""
    scored = node.copy()
    scored["terms"] = {**node.get("terms", {}), PAIRS: score}
    return scored


def contenders(tree: TreeView, search: TreeSearch) -> list[TreeNode]:
    """Return the distinct answers that nothing but a judge tells apart, the best first, of equals the most frequent.

    Where an environment or verifiers score them, those are the answers of the highest score. An answer with invented
    sources is among them only if there is no other.
    """
    answers = [each for each in unpruned(tree) if each["kind"] == "answer"]
    sound = sorted([each for each in answers if not each.get("unfounded")] or answers, key=rank)
    if any("reward" in each or VERIFIERS in each.get("terms", {}) for each in sound):
        sound = [each for each in sound if each["score"] == sound[0]["score"]]
    equal: defaultdict[str, list[TreeNode]] = defaultdict(list)
    for each in sound:
        equal[" ".join(split_references(search.world.answer(each))[0].split())].append(each)

    def order(same: Sequence[TreeNode]) -> tuple[float, int]:
        return -(same[0]["score"] or 0.0), -sum(each.get("samples", 1) for each in same)

    return [same[0] for same in sorted(equal.values(), key=order)]


async def compare(
    state: SearchState, step: Step[C], search: TreeSearch, rivals: Sequence[TreeNode], most: int
) -> Ranking:
    """Compare whole trajectories."""
    return await rank_by_pairs(
        step,
        step.context.judge_model or step.context.model,
        [trajectory_text(path(state["tree"], each["id"])) for each in rivals],
        most,
        task=search.world.task,
        request=state["request"],
    )


def chosen_by(reached: Outcome | None, reason: str, *, is_judged: bool) -> Outcome | None:
    """Return what has ended the search, with what the comparisons say. Where no judge has refused the answers, nothing
    left to try means that there is one."""
    if reached is None:
        return None
    status = "answered" if reached["status"] == "exhausted" and not is_judged else reached["status"]
    return {**reached, "status": status, "reason": "; ".join(filter(None, [reached["reason"], reason]))}
