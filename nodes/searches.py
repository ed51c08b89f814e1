"""What the graphs of all searches have in common: how a search begins, goes on and answers."""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Overwrite

from environments.base import Task
from nodes.agent import environment_of
from nodes.answers import read_answer
from nodes.candidates import Branch, trajectory_text
from nodes.growth import Search
from nodes.lessons import Learned
from nodes.policies import Arms
from nodes.searching import FRESH, Round, start_of
from nodes.step import Step, Update
from nodes.transcript import quoted, request_text
from nodes.turn import begin, end, unless_ended
from search.base import Algorithm, best_step, path, tell
from state.errors import LimitReached, ModelFailed
from state.run import Outcome
from state.searching import TreeContext
from state.tree import Lesson, SearchOutput, SearchState
from state.trial import ActingInput


def search_graph(
    name: str,
    schema: type[TreeContext],
    start: Any,
    expand: Any,
    finish: Any,
    state: Any = SearchState,
    output: Any = SearchOutput,
) -> StateGraph[Any, Any, Any, Any]:
    """The graph of a search: begin -> start -> expand -> expand -> ... -> finish.

    Args:
        name: The strategy's name.
        schema: Its settings.
        start: The node that makes the root.
        expand: The node that grows the tree, again and again until something ends the run.
        finish: The node that answers.
        state: Its state, and `output` what of it is returned, if that is more than what all searches have.
    """
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        state, context_schema=schema, input_schema=ActingInput, output_schema=output
    )
    builder.add_node("begin", begin(name, schema, enter, **FRESH))
    builder.add_node("start", start)
    builder.add_node("expand", expand | RunnableLambda(_again, afunc=_again_at_once), destinations=("expand", "finish"))
    builder.add_node("finish", finish)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "start")
    builder.add_conditional_edges("start", unless_ended("expand"), ["expand", "finish"])
    builder.add_edge("finish", END)
    return builder


def _again(update: Update) -> Command[str]:
    """Expand until something has ended the run. A conditional edge would copy the whole tree to look at the outcome."""
    return Command(update=update, goto="finish" if update.get("outcome") else "expand")


async def _again_at_once(update: Update) -> Command[str]:
    """The same; a plain function would be sent to another thread and back."""
    return _again(update)


async def enter(state: Mapping[str, Any], step: Step[Any]) -> Update:
    """Begin a search: where its task starts, and what is asked, as quoted text.

    The task's right answer is left out unless the settings ask for it: without it, no environment can reward by it.
    """
    given = cast(Task | None, state.get("task")) or {"id": "", "question": state["messages"][-1].text}
    task = {key: value for key, value in given.items() if key != "gold" or step.context.gold_reward}
    environment = await environment_of(step.context)
    world = environment.start(cast(Task, task)) if environment else {}
    request = quoted("request", environment.public(world)) if environment else request_text(state["messages"])
    told = [Lesson(node="", answer="", text=text) for text in (*state["recalled"], state.get("advice")) if text]
    used: Update = {name: None for name in ("task", "advice", "reward") if name in state}
    return {"world": world, "request": request, "recalled": [], "lessons": Overwrite(told), **used}


async def first(state: Mapping[str, Any], step: Step[Any], algorithm: Algorithm, search: Search) -> Update:
    """Make the root: where the task of an environment starts, which costs nothing, else a first step."""
    if not state["world"]:
        return await Round(state, step, algorithm, search).run()
    return rooted(state, step, algorithm)


def rooted(state: Mapping[str, Any], step: Step[Any], algorithm: Algorithm) -> Update:
    """Make the root where nothing has been done yet."""
    root = start_of(state["world"])
    node = root.node
    shown = {"id": node["id"], "parent_id": None, "depth": 0, "kind": "root", "score": None, "solved": False}
    step.emit("node", **shown, expansions=0)
    log = {
        "kind": "start",
        "node": None,
        "added": [node["id"]],
        "stats": {node["id"]: [0, 0.0]},
        "calls": 0,
        "tokens": 0,
    }
    start = {"node": None, "kind": "start", "first": 0, "width": 1}
    return {"tree": {node["id"]: node}, "stats": tell(algorithm, {}, cast(Any, start), [root]), "log": [log]}


async def answer(state: Mapping[str, Any], step: Step[TreeContext], search: Search) -> Update:
    """Answer with the best answer of the tree; if there is none, let the best trajectory answer now."""
    best = state["tree"].get(state["best"] or "")
    if best is not None:
        text, reward = search.world.answer(best), best.get("reward")
        message = AIMessage(text, id=best["messages"][0].id if best["messages"] else None)
    else:
        try:
            text, reward = await conclude(state, step, search)
        except (LimitReached, ModelFailed) as stop:
            text, reward = "", None
            state = {**state, "outcome": because(state["outcome"], stop)}
        message = AIMessage(text)
    if (reached := state["outcome"]) and "gold" in state["world"].get("task", {}):
        reason = f"{reached['reason']} (the search was rewarded by the right answer: gold_reward)"
        state = {**state, "outcome": {**reached, "reason": reason}}
    trees = {lesson["text"]: path(state["tree"], lesson["node"]) for lesson in state["lessons"] if lesson["node"]}
    learned = [Learned(text, trajectory_text(steps)) for text, steps in trees.items()]
    made = best or best_step(state["tree"])
    model = search.policy.of(made).model if isinstance(search.policy, Arms) and made else None
    return {"reward": reward} | await end(state, step, message if text else None, learned, model)


def because(reached: Outcome | None, stop: LimitReached | ModelFailed) -> Outcome:
    """Why there is no answer, where even the last attempt has failed: what has ended the search, and what has stopped
    the attempt, unless that is a limit as well."""
    if reached is None or reached["status"] == "failed":
        return reached or Outcome(status="failed", reason=str(stop))
    if reached["status"] == "limit_reached" and isinstance(stop, LimitReached):
        return reached
    return Outcome(status="failed", reason=f"{reached['reason']}, and no answer could be had: {stop}")


async def conclude(state: Mapping[str, Any], step: Step[TreeContext], search: Search) -> tuple[str, float | None]:
    """Ask for an answer from the best trajectory; empty if there is none, or no call has succeeded.

    Raises:
        LimitReached: if a limit forbids it.
        ModelFailed: if the model does not answer.
    """
    best = best_step(state["tree"])
    usage = step.meter.usage
    if best is None or usage["failed_calls"] == usage["model_calls"] > 0:
        return "", None
    nodes = path(state["tree"], best["id"])
    job: Any = {"node": best["id"], "kind": "expand", "first": 0, "width": 1}
    text = await search.policy.conclude(Branch(job, state["messages"], state["request"], nodes, (), False))
    if not text.strip():
        raise ModelFailed("the model called a tool where it had to write text")
    candidate = await search.world.reward(best if "state" in best else None, text)
    if candidate is None:
        return read_answer(text, step.context.environment_name) or "", None
    return search.world.answer(candidate.as_node(f"{best['id']}.0", best["id"])), candidate.reward
