"""Choosing among the answers of a tree, once the search has ended: by pairs, or by the agreement of programs."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from reflective_agents.nodes.asking.pairs import Ranking, rank_by_pairs
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.state.families import ChoosingContext, TreeContext
from reflective_agents.state.outcome import Outcome, with_reason
from reflective_agents.state.tree import SearchState, TreeNode, TreeView
from reflective_agents.tree_search.agreement import Agreement, agree
from reflective_agents.tree_search.candidates import VERIFIERS, Branch, Candidate, Grade, trajectory_text
from reflective_agents.tree_search.graph import Node, Setup, answer
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.tree_paths import path, rank, unpruned
from reflective_agents.tree_search.values import Value
from reflective_agents.tree_search.worlds import TaskWorld

C = TypeVar("C", bound=TreeContext)
PAIRS = "pairs"


class Unjudged(Value):
    """Gives all answers the same score, since one is chosen once all are there; steps get none."""

    def calls(self, width: int) -> int:
        """Count no call."""
        return 0

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Give an answer the score of an average one."""
        return Grade(0.5) if candidate.answers else None


class Contender(NamedTuple):
    """One of the different answers of a tree.

    Attributes:
        node: Where it stands first.
        samples: How often it was written.
    """

    node: TreeNode
    samples: int


def finishing(schema: type[C], setup: Setup[C]) -> Node:
    """Make the node that answers with the best answer of the tree, chosen as the settings say."""

    @node(schema)
    async def finish(state: SearchState, step: Step[C]) -> Update:
        context = step.context
        search = await setup(state, step)
        assert isinstance(context, ChoosingContext)
        way = context.way_to_choose
        if way == "score" or (state["outcome"] or {}).get("status") == "solved":
            return await answer(state, step, search)
        choose = compare if way == PAIRS else run_tests
        rivals, choice = await choose(state, step, search)
        is_judged = not isinstance(search.value, Unjudged)
        chosen = state.copy()
        if choice is None:
            chosen["outcome"] = chosen_by(state["outcome"], "", is_judged=is_judged or not rivals)
            return await answer(chosen, step, search)
        nodes = [each.node for each in rivals]
        if choice.scores:
            nodes = [with_term(node, score, way) for node, score in zip(nodes, choice.scores, strict=True)]
        best = nodes[choice.best]
        if choice.scores and not is_scored(best):
            best["score"] = choice.scores[choice.best]
        changed = {node["id"]: node for node in nodes}
        chosen["best"] = best["id"]
        chosen["tree"] = {**state["tree"], **changed}
        chosen["outcome"] = chosen_by(state["outcome"], choice.reason, is_judged=is_judged)
        return {"best": best["id"], "tree": changed} | await answer(chosen, step, search)

    return finish


def with_term(node: TreeNode, score: float, name: str) -> TreeNode:
    """Return a copy of a node with what chooses among the answers, beside its other figures."""
    copied = node.copy()
    copied["terms"] = {**node.get("terms", {}), name: score}
    return copied


def is_scored(node: TreeNode) -> bool:
    """Return whether the environment or verifiers have scored an answer, and not a judge."""
    return "reward" in node or VERIFIERS in node.get("terms", {})


def contenders(tree: TreeView, same: Callable[[TreeNode], str]) -> list[Contender]:
    """Return the different answers that nothing but a judge tells apart, the best first, of equals the most frequent.

    Where an environment or verifiers score them, those are the answers of the highest score. An answer with invented
    sources is among them only if there is no other.

    Args:
        tree: The tree.
        same: Returns a text that equal answers share.
    """
    answers = [each for each in unpruned(tree) if each["kind"] == "answer"]
    founded = [each for each in answers if not each.get("unfounded")]
    sound = founded or answers
    sound.sort(key=rank)
    if any(map(is_scored, sound)):
        sound = [each for each in sound if each["score"] == sound[0]["score"]]
    equal: defaultdict[str, list[TreeNode]] = defaultdict(list)
    for each in sound:
        equal[same(each)].append(each)
    different = []
    for nodes in equal.values():
        samples = sum(node.get("samples", 1) for node in nodes)
        different.append(Contender(nodes[0], samples))
    return sorted(different, key=lambda each: (-(each.node["score"] or 0.0), -each.samples))


Chosen = tuple[Sequence[Contender], Ranking | Agreement | None]
"""The different answers, and which one is chosen: None if there are not two."""


async def compare(state: SearchState, step: Step[C], search: TreeSearch) -> Chosen:
    """Compare whole trajectories by pairs."""
    context = step.context
    assert isinstance(context, ChoosingContext)

    def words(node: TreeNode) -> str:
        body, _ = split_references(search.world.answer(node))
        return " ".join(body.split())

    rivals = contenders(state["tree"], words)[: context.comparisons + 1]
    if len(rivals) < 2:
        return rivals, None
    trajectories = [path(state["tree"], each.node["id"]) for each in rivals]
    ranking = await rank_by_pairs(
        step,
        context.judge_model or context.model,
        list(map(trajectory_text, trajectories)),
        context.comparisons,
        task=search.world.task,
        request=state["request"],
    )
    return rivals, ranking


async def run_tests(state: SearchState, step: Step[C], search: TreeSearch) -> Chosen:
    """Test programs by what the model expects of them."""
    world = search.world
    assert isinstance(world, TaskWorld)
    rivals = contenders(state["tree"], world.answer)
    if len(rivals) < 2:
        return rivals, None
    programs = [world.answer(each.node) for each in rivals]
    samples = [each.samples for each in rivals]
    return rivals, await agree(step, world, state["request"], programs, samples)


def chosen_by(reached: Outcome | None, reason: str, *, is_judged: bool) -> Outcome | None:
    """Return what has ended the search, with why the answer was chosen, if it was. Where no judge has refused the
    answers, nothing left to try means that there is one."""
    outcome = with_reason(reached, reason)
    if outcome and outcome["status"] == "exhausted" and not is_judged:
        outcome["status"] = "answered"
    return outcome
