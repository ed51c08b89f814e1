"""Where a run of `graphs.auto` stands: what it has found, and what it may still spend."""

from reflective_agents.graphs._auto.answering import elected
from reflective_agents.graphs._auto.growing import calls_of_rollout, growing
from reflective_agents.graphs._auto.policy import Standing
from reflective_agents.graphs._auto.room import room_for
from reflective_agents.graphs._auto.state import AutoState
from reflective_agents.graphs.chain_of_thought import certainty
from reflective_agents.nodes.evidence.research import engine
from reflective_agents.nodes.step import Step
from reflective_agents.state.limits import Limit
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.text.declining import declines
from reflective_agents.tree_search.base import get_extra
from reflective_agents.tree_search.tree_paths import ROOT, best_node

LONGER = 3
"""How many times as long as a sample's the calls of a tree search are taken to be, before the first was sent."""


async def standing(state: AutoState, step: Step[AutoContext]) -> Standing:
    """Measure where a run stands."""
    context, samples, search = step.context, state["samples"], await growing(state, step)
    calls, search_calls, dear = affordable(state, step)
    begun, grown = rollouts(state), sum(entry["calls"] for entry in state["log"])
    rollout = max(grown // begun, 1) if begun else calls_of_rollout(search, context)
    over = bool(state["search_over"])
    found = engine(step, state["run_id"]) is not None or bool(context.tools)
    return Standing(
        calls=calls,
        search_calls=search_calls,
        rollout=rollout,
        search_cost=dear,
        samples=len(samples),
        certainty=safety(state, context),
        checked=any(drawn["reward"] is not None for drawn in samples),
        may_look_up=context.environment is None and found and context.max_rounds > 0 and state["evidence"] is None,
        searched=bool(state["tree"]),
        search_over=over,
        fruitless=begun - state["better"],
        promise=promise(state),
        trials=state["trials"],
        may_try=over and bool(samples) and state["trials"] < context.max_trials,
    )


def affordable(state: AutoState, step: Step[AutoContext]) -> tuple[int, int, float]:
    """Return how many calls may still be sent, how many of the tree search, and how many calls one of the search is
    worth: by tokens where they run out first, else by number.

    A call takes as many tokens as those before it did on average; of the tree search, as many as its own did.
    """
    calls, usage, longest = step.meter.calls_left, step.meter.usage, state.get("longest") or {}
    left = step.context.max_total_tokens - usage["total_tokens"]
    if not usage["model_calls"] or not usage["total_tokens"]:
        return calls, calls, 1.0
    grown, tokens = sum(entry["calls"] for entry in state["log"]), sum(entry["tokens"] for entry in state["log"])
    others = usage["model_calls"] - grown
    each = max((usage["total_tokens"] - tokens) / others, 1.0) if others else tokens / max(grown, 1)
    dear = max(tokens / grown, 1.0) if grown else LONGER * each
    by_tokens = int((left - room_for("sample", longest)) / each)
    searching = int((left - room_for("search", longest)) / dear)
    return min(calls, by_tokens), min(calls, searching), dear / each if by_tokens < calls else 1.0


def safety(state: AutoState, context: AutoContext) -> float:
    """Return how safe the vote of the samples is, 0..1. It is not while tools that were given were not used, nor where
    the answer that leads declares that there is none."""
    leader = elected(state["samples"])
    unused = bool(context.tools) and state["evidence"] is None
    return 0.0 if unused or leader is None or declines(leader["answer"]) else certainty(state["samples"])


def spent_limit(state: AutoState, step: Step[AutoContext]) -> Limit:
    """Return the limit that leaves no call: their number, else the tokens that one is expected to take."""
    usage = step.meter.usage
    if step.meter.calls_left < 1:
        return step.meter.limit("max_model_calls")
    each = usage["total_tokens"] // max(usage["model_calls"], 1) + 1
    return step.meter.limit("max_total_tokens", each + room_for("sample", state.get("longest") or {}))


def rollouts(state: AutoState) -> int:
    """Return how many rollouts have begun; where none is simulated, each expansion is one."""
    root = state["stats"].get(ROOT)
    return get_extra(root, "begun", 0) if root else 0


def under_way(state: AutoState) -> bool:
    """Return whether a rollout has begun and not come to its end."""
    root = state["stats"].get(ROOT)
    waiting: list[str] = get_extra(root, "rollouts", []) if root else []
    return bool(waiting)


def promise(state: AutoState) -> float:
    """Return the score of the best step of a tree that is over, where no answer of it is better; 0 if there is none."""
    if not state["search_over"] or state["concluded"]:
        return 0.0
    best = best_node(state["tree"])
    return (best["score"] or 0.0) if best and best["kind"] == "action" else 0.0
