"""The progress of a run of `graphs.auto`: what it has found, and what it may still spend."""

from reflective_agents.environments.base import Environment
from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs._auto.answer_budget import answer_budget
from reflective_agents.graphs._auto.answering import elected
from reflective_agents.graphs._auto.growing import calls_of_rollout, widening_search
from reflective_agents.graphs._auto.ladder import of_this_rung, rung_of, rungs_left
from reflective_agents.graphs._auto.policy import Progress
from reflective_agents.graphs._auto.state import AutoState
from reflective_agents.graphs.chain_of_thought import certainty
from reflective_agents.nodes.acting.agent import environment_of
from reflective_agents.nodes.asking.pairs import ORDERS
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.research import engine
from reflective_agents.nodes.step import Step
from reflective_agents.state.limits import Limit
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.text.declining import declines
from reflective_agents.text.normal import folded
from reflective_agents.tree_search.base import get_extra
from reflective_agents.tree_search.tree_paths import ROOT, best_node

LONGER = 3
"""How many times as long as a sample's the calls of a tree search are taken to be, before the first was sent."""


async def measure_progress(state: AutoState, step: Step[AutoContext]) -> Progress:
    """Measure what a run has found, and what it may still spend."""
    context = step.context
    samples = of_this_rung(state)
    calls, search_calls, search_cost = affordable_calls(state, step)
    begun = rollouts(state)
    if begun:
        tree_calls = sum(entry["calls"] for entry in state["log"])
        rollout = max(tree_calls // begun, 1)
    else:
        rollout = calls_of_rollout(await widening_search(state, step), context)
    search_over = bool(state["search_over"])
    return Progress(
        calls=calls,
        search_calls=search_calls,
        rollout=rollout,
        search_cost=search_cost,
        samples=len(samples),
        certainty=vote_safety(state, await environment_of(context)),
        checked=any(sample["reward"] is not None for sample in samples),
        may_look_up=may_look_up(state, step),
        checks_sources=context.verify_sources,
        searched=bool(state["tree"]),
        search_over=search_over,
        fruitless=begun - state["better"],
        promise=best_unanswered_score(state),
        trials=state["trials"],
        rungs_left=rungs_left(state, step),
        may_try=search_over and bool(samples) and state["trials"] < context.max_trials,
    )


def may_look_up(state: AutoState, step: Step[AutoContext]) -> bool:
    """Return whether there is something to look an open question up with that the present model has not used yet."""
    if step.context.environment is not None or not step.context.max_rounds:
        return False
    evidence = state["evidence"]
    if evidence is not None and evidence.get("rung", 0) == rung_of(state):
        return False
    return engine(step, state["run_id"]) is not None or bool(step.context.tools)


def affordable_calls(state: AutoState, step: Step[AutoContext]) -> tuple[int, int, float]:
    """Return how many calls may still be sent, how many of the tree search, and how many calls one of the search is
    worth: by tokens where they run out first, else by number.

    A call takes as many tokens as those before it did on average; of the tree search, as many as its own did.
    """
    calls = calls_left(state, step)
    usage = step.meter.usage
    if not usage["model_calls"] or not usage["total_tokens"]:
        return calls, calls, 1.0
    tree_calls = sum(entry["calls"] for entry in state["log"])
    tree_tokens = sum(entry["tokens"] for entry in state["log"])
    other_calls = usage["model_calls"] - tree_calls
    other_tokens = usage["total_tokens"] - tree_tokens
    per_call = max(other_tokens / other_calls, 1.0) if other_calls else tree_tokens / max(tree_calls, 1)
    per_tree_call = max(tree_tokens / tree_calls, 1.0) if tree_calls else LONGER * per_call
    left = step.context.max_total_tokens - usage["total_tokens"]
    longest = state.get("longest") or {}
    by_tokens = int((left - answer_budget("sample", longest)) / per_call)
    tree_by_tokens = int((left - answer_budget("search", longest)) / per_tree_call)
    search_cost = per_tree_call / per_call if by_tokens < calls else 1.0
    return min(calls, by_tokens), min(calls, tree_by_tokens), search_cost


def calls_left(state: AutoState, step: Step[AutoContext]) -> int:
    """Return how many calls may still be sent. Some are kept for comparisons at the end, a quarter of the run's at
    most, unless something scores answers: those are not compared."""
    context = step.context
    left = step.meter.calls_left
    is_scored = any(sample["reward"] is not None for sample in state["samples"])
    if is_scored or context.choose != "pairs":
        return left
    return left - min(ORDERS * context.comparisons, context.max_model_calls // 4)


def vote_safety(state: AutoState, environment: Environment | None) -> float:
    """Return how safe the vote of the samples is, 0..1. It is not where the answer that leads declares that there is
    none, where nobody has answered from what was looked up, where who looked found no answer there, nor where such an
    answer cites sources and is another."""
    samples = of_this_rung(state)
    leader = elected(samples)
    if leader is None:
        return 0.0
    if declines(leader["answer"]) and not (environment or PLAIN).is_label(leader["answer"]):
        return 0.0
    if evidence := state["evidence"]:
        if not evidence["answer"] or evidence.get("declined"):
            return 0.0
        text, sources = split_references(evidence["answer"])
        if sources and folded(leader["answer"]) not in folded(text):
            return 0.0
    return certainty(samples)


def spent_limit(state: AutoState, step: Step[AutoContext]) -> Limit:
    """Return the limit that leaves no call: their number, else the tokens that one is expected to take."""
    usage = step.meter.usage
    left = step.meter.calls_left
    calls = calls_left(state, step)
    if calls < 1:
        return step.meter.limit("max_model_calls", left - calls + 1 if left else 0)
    per_call = usage["total_tokens"] // max(usage["model_calls"], 1) + 1
    return step.meter.limit("max_total_tokens", per_call + answer_budget("sample", state.get("longest") or {}))


def rollouts(state: AutoState) -> int:
    """Return how many rollouts have begun; where none is simulated, each expansion is one."""
    root = state["stats"].get(ROOT)
    return get_extra(root, "begun", 0) if root else 0


def under_way(state: AutoState) -> bool:
    """Return whether a rollout has begun and not come to its end."""
    root = state["stats"].get(ROOT)
    return bool(root and get_extra(root, "rollouts", []))


def best_unanswered_score(state: AutoState) -> float:
    """Return the score of the best step of a tree that is over, where no answer of it is better; 0 if there is none."""
    if not state["search_over"] or state["concluded"]:
        return 0.0
    best = best_node(state["tree"])
    return (best["score"] or 0.0) if best and best["kind"] == "action" else 0.0
