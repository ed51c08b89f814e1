"""Language Agent Tree Search (Zhou et al. 2024, arXiv 2310.04406), as start and expand.

    begin -> start -> expand -> expand -> ... -> finish

`start` takes the first step. Each `expand` selects a leaf by UCT, samples candidates from it, lets them act, has a
judge score each whole trajectory and backpropagates the scores (the operations of section 4.2, without simulation
and reflection). The best answer wins, wherever in the tree it stands.
"""

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite

from models.calls import takes_n
from nodes.chat import complete, model_of
from nodes.expand import Candidate, Expansion, as_node, history
from nodes.research import search_tools
from nodes.step import Step, Update, node, stop
from nodes.turn import begin, end, unless_ended
from prompts import lats as prompts
from search.mcts import ROOT, best_answer, best_step, path, select, tell
from state.context import LatsContext
from state.errors import LimitReached, ModelFailed
from state.run import Input, Output
from state.tree import SearchState, Stats, Tree, TreeNode


class LatsOutput(Output):
    """What a run returns; the tree and its statistics are its artefact."""

    tree: Tree
    stats: Stats
    expansions: int


@node(LatsContext)
async def start(state: SearchState, step: Step[LatsContext]) -> Update:
    """Take the first step: answer, or call tools."""
    return await grow(state, step, leaf=None, width=1)


@node(LatsContext)
async def expand(state: SearchState, step: Step[LatsContext]) -> Update:
    """Select a leaf by UCT and grow it by up to n candidates, as many as the limits leave room for."""
    leaf = select(state["stats"], step.context.exploration_weight)
    if leaf is None:
        return stop("exhausted", "no leaf is left that could be expanded")
    if state["expansions"] >= step.context.max_expansions:
        return stop("limit_reached", f"max_expansions={step.context.max_expansions} reached")
    update = await grow(state, step, leaf, affordable(state, step))
    return {**update, "expansions": state["expansions"] + 1}


@node(LatsContext)
async def finish(state: SearchState, step: Step[LatsContext]) -> Update:
    """Answer with the best answer of the tree; if there is none, let the best trajectory answer now."""
    best = best_answer(state["tree"])
    if best:
        return end(state, step, AIMessage(best["messages"][0].text, id=best["messages"][0].id))
    return end(state, step, await conclude(state, step))


async def grow(state: SearchState, step: Step[LatsContext], leaf: str | None, width: int) -> Update:
    """Grow the tree below a leaf, or from nothing, and see whether the search is over."""
    context, trajectory = step.context, path(state["tree"], leaf) if leaf else []
    depth, keep = len(trajectory), calls_to_keep(state)
    may_act = depth < context.max_depth and step.meter.calls_left > keep
    tools = search_tools(step, state["run_id"])
    expansion = Expansion(step, state["messages"], trajectory, tools, may_act, keep)
    candidates = await expansion.run(width)
    nodes = [place(candidate, i, leaf, depth, context) for i, candidate in enumerate(candidates)]
    for new in nodes:
        told = {key: new[key] for key in ("id", "parent_id", "depth", "kind", "score", "solved")}
        step.emit("node", **told, expansions=state["expansions"] + (leaf is not None))
    stats = tell(state["stats"], leaf, [(new, expandable(new, context)) for new in nodes])
    return {"tree": {new["id"]: new for new in nodes}, "stats": stats, **verdict(nodes, expansion)}


def place(candidate: Candidate, index: int, leaf: str | None, depth: int, context: LatsContext) -> TreeNode:
    """The node of a candidate, under an id that says where it stands."""
    node_id = f"{leaf}.{index}" if leaf else ROOT
    return as_node(candidate, node_id, leaf, depth, context.min_score)


def expandable(new: TreeNode, context: LatsContext) -> bool:
    """Whether a node may be expanded: not if it is solved, too deep, or an answer that is not to be revised."""
    return (
        not new["solved"] and new["depth"] < context.max_depth and (new["kind"] == "action" or context.revise_answers)
    )


def verdict(nodes: list[TreeNode], expansion: Expansion) -> Update:
    """What an expansion means for the run: solved, at a limit, or without any model that answers or judges."""
    solved = [new for new in nodes if new["solved"]]
    if solved:
        return stop("solved", f"the judge accepts node {solved[0]['id']} with a score of {solved[0]['score']:.2f}")
    limits = [reason for reason in expansion.stops if isinstance(reason, LimitReached)]
    if limits:
        return stop("limit_reached", limits[0])
    if expansion.stops and all(new["score"] is None for new in nodes):
        return stop("failed", expansion.stops[0])
    return {}


def affordable(state: SearchState, step: Step[LatsContext]) -> int:
    """How many candidates the calls that are left allow to sample and judge.

    Raises:
        LimitReached: if not a single one.
    """
    context, left = step.context, step.meter.calls_left - calls_to_keep(state)
    samples_at_once = takes_n(model_of(step, context.model))
    if context.grading == "together":
        width = context.n if samples_at_once and left >= 2 else left - 1
    else:
        width = left - 1 if samples_at_once else left // 2
    if width < 1:
        raise LimitReached(f"max_model_calls={context.max_model_calls} leaves no room for another expansion")
    return min(context.n, width)


def calls_to_keep(state: SearchState) -> int:
    """How many calls are kept back: one for an answer, as long as there is none."""
    return int(best_answer(state["tree"]) is None)


async def conclude(state: SearchState, step: Step[LatsContext]) -> AIMessage | None:
    """Ask for an answer from the best trajectory; None if there is none or the limits forbid it."""
    best = best_step(state["tree"])
    if best is None:
        return None
    trajectory = [*history(path(state["tree"], best["id"])), HumanMessage(prompts.CONCLUDE)]
    prompt = prompts.ACT.format_messages(conversation=state["messages"], trajectory=trajectory)
    try:
        tools = search_tools(step, state["run_id"])
        return AIMessage(await complete(step, step.context.model, prompt, tools=tools))
    except (LimitReached, ModelFailed):
        return None


builder: StateGraph[Any, LatsContext, Any, Any] = StateGraph(
    SearchState, context_schema=LatsContext, input_schema=Input, output_schema=LatsOutput
)
builder.add_node("begin", begin("lats", LatsContext, tree=Overwrite({}), stats=Overwrite({}), expansions=0))
builder.add_node("start", start)
builder.add_node("expand", expand)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "start")
builder.add_conditional_edges("start", unless_ended("expand"), ["expand", "finish"])
builder.add_conditional_edges("expand", unless_ended("expand"), ["expand", "finish"])
builder.add_edge("finish", END)

graph = builder.compile(name="lats")
