"""What the graphs of all tree searches have in common: how one begins, goes on and answers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.types import Command, Overwrite

from reflective_agents.environments.base import Environment, task_of, without_gold
from reflective_agents.nodes.acting.agent import appraise, environment_of
from reflective_agents.nodes.acting.react_text import held_answer, parse_answer
from reflective_agents.nodes.answer_stream import AnswerStream, final_answer
from reflective_agents.nodes.asking.transcript import quoted, request_text
from reflective_agents.nodes.bridge import SyncAdapter
from reflective_agents.nodes.evidence.verifying import NO_EVIDENCE, Evidence
from reflective_agents.nodes.step import Step, Update, node
from reflective_agents.nodes.strategy import StrategyBuilder
from reflective_agents.nodes.turn import ENDED, GOES_ON, begin, end, strategy_graph, unless_ended
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.families import TreeContext
from reflective_agents.state.outcome import UNCHECKED, Appraisal, Outcome, with_reason
from reflective_agents.state.tree import Lesson, LogEntry, SearchOutput, SearchState, TreeNode
from reflective_agents.state.trial import ActingInput
from reflective_agents.tree_search.base import START as START_JOB
from reflective_agents.tree_search.base import Child, Job, tell
from reflective_agents.tree_search.candidates import Branch, thought_of
from reflective_agents.tree_search.job import TreeSearch
from reflective_agents.tree_search.lessons import earlier_lessons, own_lessons
from reflective_agents.tree_search.loop import SearchStep
from reflective_agents.tree_search.steering_step import SteeringStep
from reflective_agents.tree_search.tree_paths import ROOT, furthest_node, path
from reflective_agents.tree_search.worlds import without_task

C = TypeVar("C", bound=TreeContext)
Node = Runnable[SearchState, Update]
Setup = Callable[[SearchState, Step[C]], Awaitable[TreeSearch]]
"""Puts a tree search together for a state and the settings of a step."""
FRESH: Update = {
    "tree": Overwrite({}),
    "stats": Overwrite({}),
    "log": Overwrite([]),
    "lessons": Overwrite([]),
    "values": Overwrite({}),
    "expansions": 0,
    "best": None,
}
"""The channels of a tree search as a turn begins."""


def search_graph(
    name: str,
    schema: type[C],
    setup: Setup[C],
    *,
    expand: Node | None = None,
    finish: Node | None = None,
    state: type[SearchState] = SearchState,
    output: type[SearchOutput] = SearchOutput,
    **fresh: Any,
) -> StrategyBuilder[SearchState, C | Mapping[str, Any], Any, SearchOutput]:  # type: ignore[type-var]
    """Build the graph of a tree search: begin -> start -> expand -> expand -> ... -> finish.

    Args:
        name: The strategy's name.
        schema: Its settings.
        setup: Puts the tree search together.
        expand: The node that grows the tree until something ends the run, instead of the usual one.
        finish: The node that answers, instead of the usual one.
        state: The state, if the strategy adds channels to that of all tree searches.
        output: The part of the state that is returned.
        fresh: The first values of further channels.
    """
    builder = strategy_graph(state, context_schema=schema, input_schema=ActingInput, output_schema=output)
    start, grow, steer, reply = usual_nodes(schema, setup)
    route = SyncAdapter(_expand_or_finish)
    builder.add_node("begin", begin(name, schema, enter, **FRESH, **fresh))
    builder.add_node("start", start)
    builder.add_node(
        "expand", unless_ordered(expand or grow, steer) | route, destinations={"expand": GOES_ON, "finish": ENDED}
    )
    builder.add_node("finish", unless_ordered(finish or reply))
    builder.add_edge("begin", "start")
    builder.add_conditional_edges("start", *unless_ended("expand"))
    return builder


def usual_nodes(schema: type[C], setup: Setup[C]) -> tuple[Node, Node, Node, Node]:
    """Make the usual nodes of a tree search: start, expand, steer and finish."""

    @node(schema)
    async def start(state: SearchState, step: Step[C]) -> Update:
        """Make the root: the task as it stands, or a first step."""
        search = await setup(state, step)
        return await SearchStep(state, step, search).run() if search.sample_root else bare_root(state, step, search)

    @node(schema)
    async def expand(state: SearchState, step: Step[C]) -> Update:
        """Run the next jobs of the tree search, `parallel` at once."""
        return await SearchStep(state, step, await setup(state, step)).run()

    @node(schema)
    async def steer(state: SearchState, step: Step[C]) -> Update:
        """Carry out the orders of people, instead of an expansion."""
        return SteeringStep(state, step, await setup(state, step)).run()

    @node(schema)
    async def finish(state: SearchState, step: Step[C]) -> Update:
        """Answer with the best answer of the tree."""
        return await answer(state, step, await setup(state, step))

    return start, expand, steer, finish


def unless_ordered(usual: Node, steer: Node | None = None) -> Node:
    """Make a node that steers where there are orders; without `steer` it leaves them to another node."""

    def choose(state: SearchState) -> Any:
        return usual if not state.get("orders") else steer or {}

    async def choose_at_once(state: SearchState) -> Any:
        return choose(state)

    return RunnableLambda(choose, afunc=choose_at_once)


async def _expand_or_finish(update: Update) -> Command[str]:
    """Expand until something has ended the run. A conditional edge would copy the whole tree to look at the outcome."""
    if "then" not in update:
        return Command(update=update, goto="finish" if update.get("outcome") else "expand")
    written = {name: value for name, value in update.items() if name != "then"}
    return Command(update=written, goto=update["then"])


async def enter(state: SearchState, step: Step[TreeContext]) -> Update:
    """Begin a tree search: the state in which its task starts, and the request, as quoted text.

    The task's right answer is left out unless the settings ask for it, or the environment needs it.
    """
    task = task_of(state.get("task"), state["messages"][-1].text)
    environment = await environment_of(step.context)
    if not step.context.gold_reward:
        task = without_gold(task, environment)
    start = environment.start(task) if environment else {}
    request = quoted("request", environment.public(start)) if environment else request_text(state["messages"])
    lessons = [Lesson(node="", answer="", text=text, earlier=True) for text in state.get("recalled", [])]
    if advice := state.get("advice"):
        lessons.append(Lesson(node="", answer="", text=advice))
    update: Update = {"world": start, "request": request, "recalled": [], "lessons": Overwrite(lessons)}
    for name in ("task", "advice", "reward", "guess"):
        if name in state:
            update[name] = None
    if state.get("orders"):
        update["orders"] = []
    if state.get("raised"):
        update["raised"] = {}
    return update


def bare_root(state: SearchState, step: Step[TreeContext], search: TreeSearch) -> Update:
    """Make a root that holds no step, only the state in which the task starts."""
    root = TreeNode(id=ROOT, parent_id=None, depth=0, kind="root", messages=[], critique="", score=None, solved=False)
    if start := without_task(state["world"]):
        root["state"] = start
    stats = tell(search.algorithm, {}, START_JOB, [Child(root, True)])
    shown = {"id": ROOT, "parent_id": None, "depth": 0, "kind": "root", "score": None, "solved": False}
    step.emit("node", **shown, expansions=0)
    figures: dict[str, list[float]] = {ROOT: [stats[ROOT]["visits"], stats[ROOT]["total"]]}
    log = LogEntry(kind="start", node=None, added=[ROOT], stats=figures, calls=0, tokens=0)
    return {"tree": {ROOT: root}, "stats": stats, "log": [log]}


async def answer(
    state: SearchState,
    step: Step[TreeContext],
    search: TreeSearch,
    answer_text: str = "",
    evidence: Evidence = NO_EVIDENCE,
) -> Update:
    """Answer with the best answer of the tree, in the words of `answer_text` if there are any, which rest on the
    `evidence`. If the tree holds no answer, ask for one from the trajectory that has come furthest; if none is to be
    had, an answer is taken that a thought on it has held, or that followed an action."""
    best = state["tree"].get(state["best"] or "")
    outcome: Outcome | None = state["outcome"]
    environment = await environment_of(step.context)
    message_id = None
    appraisal = UNCHECKED
    if best is not None:
        text = answer_text or search.world.answer(best)
        reward = best.get("reward")
        message_id = best["messages"][0].id if best["messages"] else None
        appraisal = appraise_best(best, environment)
    else:
        text, reward = "", None
        listener = AnswerStream(step, final_answer)
        stopped: LimitReached | ModelFailed | None = None
        try:
            text, reward = await conclude(state, step, search, None if environment else listener)
        except (LimitReached, ModelFailed) as stop:
            stopped = stop
        if not text:
            text, reward = await answer_on_the_way(state, step, search)
        if text:
            message_id = await listener.end(text)
            appraisal = appraise(environment, text, reward)
        elif stopped:
            outcome = outcome_without_answer(outcome, stopped)
    if outcome and step.context.gold_reward and "gold" in state["world"].get("task", {}):
        outcome = with_reason(outcome, "the search was rewarded by the right answer (gold_reward)")
    message = AIMessage(text, id=message_id) if text else None
    answered_from = best or furthest_node(state["tree"])
    model = search.policy.author(answered_from) if answered_from else None
    final: SearchState = {**state, "outcome": outcome}
    return {"reward": reward} | await end(final, step, message, model, appraisal, evidence)


def appraise_best(best: TreeNode, environment: Environment | None) -> Appraisal:
    """Return who has verified the best answer, the environment or a judge, and its reward or score in words."""
    if environment and "reward" in best:
        text = f"the best answer has a reward of {best['reward']:g} (node {best['id']})"
        return Appraisal(environment.verifier, best["solved"], text)
    score = "no score" if best["score"] is None else f"a score of {best['score']:.2f}"
    text = f"the best answer has {score} (node {best['id']})"
    return Appraisal("judge", True, text) if best["solved"] else Appraisal(reason=text)


def outcome_without_answer(reached: Outcome | None, stop: LimitReached | ModelFailed) -> Outcome:
    """Return the outcome where even the last request for an answer has failed: what ended the search, and what stopped
    the request, unless both are limits."""
    if reached is None or reached["status"] == "failed":
        return reached or Outcome(status="failed", reason=str(stop))
    if reached["status"] == "limit_reached" and isinstance(stop, LimitReached):
        return reached
    return Outcome(status="failed", reason=f"{reached['reason']}, and no answer could be had: {stop}")


async def conclude(
    state: SearchState, step: Step[TreeContext], search: TreeSearch, listener: AnswerStream | None
) -> tuple[str, float | None]:
    """Ask for an answer from the trajectory that has come furthest; empty if there is none, or no call has succeeded.

    Raises:
        LimitReached: if a limit forbids it.
        ModelFailed: if the model does not answer.
    """
    end = furthest_node(state["tree"])
    usage = step.meter.usage
    if end is None or usage["failed_calls"] == usage["model_calls"] > 0:
        return "", None
    nodes = path(state["tree"], end["id"])
    job = Job(node=end["id"], kind="expand", first=0, width=1)
    branch = Branch(
        job,
        state["messages"],
        state["request"],
        nodes,
        lessons=own_lessons(state["lessons"]),
        earlier=earlier_lessons(state["lessons"]),
        may_act=False,
    )
    text = await search.policy.conclude(branch, listener)
    if not text.strip():
        raise ModelFailed("the model called a tool where it had to write text")
    return await _rewarded(text, nodes, step, search)


async def answer_on_the_way(
    state: SearchState, step: Step[TreeContext], search: TreeSearch
) -> tuple[str, float | None]:
    """Return an answer that a thought of the furthest trajectory has held, or that followed an action before its result
    was known, with its reward; empty if there is none."""
    end = furthest_node(state["tree"])
    nodes = path(state["tree"], end["id"]) if end else []
    held = held_answer([thought_of(node) for node in nodes]) or state.get("guess") or ""
    if not held or not nodes:
        return held, None
    return await _rewarded(held, nodes, step, search)


async def _rewarded(
    text: str, nodes: list[TreeNode], step: Step[TreeContext], search: TreeSearch
) -> tuple[str, float | None]:
    """Return the answer in a text at the end of a trajectory, and its reward if it has one."""
    candidate = await search.world.reward(nodes, text)
    if candidate is None:
        return parse_answer(text, await environment_of(step.context)) or "", None
    end = nodes[-1]["id"]
    return search.world.answer(candidate.as_node(f"{end}.0", end)), candidate.reward
