"""Why a tree search ends: it is solved, at a limit, without a model that answers, or there is nothing to gain."""

from collections.abc import Sequence
from itertools import takewhile

from reflective_agents.nodes.step import Step
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.families import BranchingContext, TreeContext
from reflective_agents.state.outcome import Outcome, limited, stopped
from reflective_agents.state.tree import LogEntry, TreeNode
from reflective_agents.tree_search.base import Algorithm
from reflective_agents.tree_search.candidates import VERIFIERS
from reflective_agents.tree_search.job_result import JobResult
from reflective_agents.tree_search.progress import Progress
from reflective_agents.tree_search.tree_paths import rank, round_score


def without_job(progress: Progress, algorithm: Algorithm, step: Step[TreeContext]) -> Outcome:
    """Return the outcome of a run for which the algorithm has no further job."""
    if ended := algorithm.ended(progress.stats):
        return Outcome(status=ended[0], reason=ended[1])
    if limit := algorithm.limit(progress.stats):
        return limited(limit)
    if any("narrowed" in entry for entry in progress.history):
        return limited(step.meter.limit("max_model_calls"), "no room for more candidates")
    reasons = [algorithm.exhausted]
    if not progress.best:
        reasons += _dead_ends(progress, step.context.max_depth)
    reasons += _last_failure(progress.history)
    return Outcome(status="exhausted", reason="; ".join(reasons))


def _last_failure(history: Sequence[LogEntry]) -> list[str]:
    """Return what has failed in the last job, if that has brought nothing: it has ended the search, too."""
    last = history[-1] if history else None
    return [f"the last call failed: {last['why']}"] if last and "failed" in last and "why" in last else []


def _dead_ends(progress: Progress, max_depth: int) -> list[str]:
    """Return the reasons why a tree search without an answer could not go on."""
    reasons: list[str] = []
    deep = sum(node["depth"] >= max_depth for node in progress.tree.values())
    if deep:
        reasons.append(f"nodes without an answer at max_depth={max_depth}: {deep}")
    refused, why = 0, ""
    for entry in progress.history:
        if "refused" in entry:
            refused += entry["refused"]
            why = entry.get("why", why)
    if why:
        reasons.append(f"steps refused: {refused}, the last one because {why}")
    return reasons


def after_job(
    result: JobResult, progress: Progress, algorithm: Algorithm, context: TreeContext, before: Outcome | None
) -> Outcome | None:
    """Return the outcome once the results of a job are in the tree; None if the search goes on.

    Args:
        result: The results.
        progress: The tree with them.
        algorithm: The search algorithm.
        context: The settings.
        before: The outcome so far, a limit or a fault; only a solution replaces it.
    """
    solved = [child.node for child in result.children if child.node["solved"]]
    if solved:
        solution = min(solved, key=rank)
        best = progress.tree[progress.best or solution["id"]]
        return Outcome(status="solved", reason=why_solved(best if best["solved"] else solution))
    if before:
        return before
    for reason in result.stops:
        if isinstance(reason, LimitReached):
            return stopped(reason)
    if result.stops and result.fruitless and _keeps_failing(progress.history, algorithm.arms):
        return stopped(result.stops[0])
    if isinstance(context, BranchingContext) and context.min_gain is not None and progress.best:
        reached = (progress.tree[progress.best]["score"] or 0.0) + context.min_gain
        if not _may_exceed(reached, progress, algorithm):
            why = f"no open leaf is better than the best answer by more than min_gain={context.min_gain:g}"
            return Outcome(status="exhausted", reason=why)
    return None


def _keeps_failing(history: Sequence[LogEntry], arms: Sequence[str]) -> bool:
    """Return whether each model has failed since the last success, and either all jobs so far have failed, or more in a
    row than there are models: a single failure does not end a search."""
    tried = [entry for entry in history if entry["calls"] or "failed" in entry]
    failures = list(takewhile(lambda entry: "failed" in entry, reversed(tried)))
    failed_arms = {entry.get("arm", "") for entry in failures}
    if not failed_arms.issuperset(arms):
        return False
    return len(failures) > len(set(arms)) or len(failures) == len(tried)


def _may_exceed(score: float, progress: Progress, algorithm: Algorithm) -> bool:
    """Return whether an open leaf promises more than a score, or what the search has found is still to be judged."""
    following = algorithm.choose(progress.stats)
    if following and following["kind"] == "judge":
        return True
    for key, stat in progress.stats.items():
        is_open_leaf = not stat["closed"] and not stat["children"]
        if is_open_leaf and (progress.tree[key]["score"] or algorithm.promise(stat)) > score:
            return True
    return False


def why_solved(node: TreeNode) -> str:
    """Return why a node solves the task. Its id stands last, to look the node up by.

    Where the node's score is not the judge's own, mixed with self-consistency or set by a person, it is said apart.
    """
    if "reward" in node:
        return f"the answer has a reward of {node['reward']:g} (node {node['id']})"
    if node.get("rescored"):
        return f"the judge accepts the answer, and a person gives it a score of {node['score']:.2f} (node {node['id']})"
    if VERIFIERS in node.get("terms", {}):
        return f"the verifiers accept the answer with a score of {node['score']:.2f} (node {node['id']})"
    judged = node.get("terms", {}).get("judge")
    accepts = "the judge accepts the answer with a score of"
    if judged is None or round_score(judged) == node["score"]:
        return f"{accepts} {node['score']:.2f} (node {node['id']})"
    mixed = f"with self-consistency, a score of {node['score']:.2f}"
    return f"{accepts} {judged:.2f}; {mixed} (node {node['id']})"
