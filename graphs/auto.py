"""Auto: the best answer for a budget. It begins cheap, and goes up as long as it pays.

    begin -> choose -> sample | look_up | climb | search | conclude | trial -> choose -> ... -> finish

`choose` says before each turn what comes next and why, by what the run may still spend and what it has found
(`_auto/policy.py`). The stages, from cheap to dear:

    climb     the next model of a ladder (`ladder`) takes over, and these stages begin again
    look_up   evidence, for open questions: draft, search the web, revise with citations (Reflexion)
    sample    whole answers, each thought out step by step; where nothing checks them, short ones vote
    search    tree search (LATS) that begins narrow: at the evidence, with the earlier answers as its first nodes
    conclude  the answer that the best trajectory leads to, where the search has come to none
    trial     reflect on what has failed, and answer once more with the lesson

It stops when something verifies the answer, when another call is expected to gain less than it costs, or at a limit.
"""

from langgraph.types import Overwrite

from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs import reflexion
from reflective_agents.graphs._auto.answer_budget import stage_node
from reflective_agents.graphs._auto.answering import distinct, draw, is_right, reflect
from reflective_agents.graphs._auto.finishing import answer_with_best
from reflective_agents.graphs._auto.growing import plant_tree, widening_search
from reflective_agents.graphs._auto.ladder import (
    climbed,
    ladder_node,
    of_this_rung,
    rung_of,
    rungs_left,
    with_bills,
)
from reflective_agents.graphs._auto.policy import calls_to_spare
from reflective_agents.graphs._auto.policy import choose as next_stage
from reflective_agents.graphs._auto.progress import measure_progress, rollouts, spent_limit, under_way
from reflective_agents.graphs._auto.state import STAGES, Attempt, AutoOutput, AutoState, LookedUp, Turn
from reflective_agents.nodes.acting.agent import environment_of
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.sampling import calls_for
from reflective_agents.nodes.delegating.inner import inner_settings, outcome_in_run
from reflective_agents.nodes.evidence.long_questions import words_of
from reflective_agents.nodes.evidence.research import find
from reflective_agents.nodes.remembering.lessons import lessons_message
from reflective_agents.nodes.step import Step, Update, stop, stop_at, stop_solved
from reflective_agents.nodes.turn import ENDED, Ended, begin, strategy_graph, unless_ended
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.settings.auto import AutoContext
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.state.trial import ActingInput
from reflective_agents.tree_search.graph import FRESH, enter
from reflective_agents.tree_search.graph import conclude as answer_from
from reflective_agents.tree_search.loop import SearchStep


@ladder_node
async def choose(state: AutoState, step: Step[AutoContext]) -> Update:
    """Say what comes next and why, or that the run is over."""
    if under_way(state) and not state["search_over"]:
        return {}
    progress = await measure_progress(state, step)
    stage, why = next_stage(progress, step.context)
    step.emit("stage", stage=stage or "none", why=why, calls_left=progress.calls)
    update: Update = {
        "turns": [Turn(stage=stage or "", why=why, model_calls=step.meter.usage["model_calls"])],
    }
    if stage:
        return update
    if progress.calls < 1:
        return update | stop_at(state["limit"] or spent_limit(state, step), why)
    if state["limit"]:
        return update | stop_at(state["limit"], why)
    return update | stop("answered", why)


@stage_node("sample")
async def sample(state: AutoState, step: Step[AutoContext]) -> Update:
    """Sample whole answers: one, where it can be checked, else as many as a vote begins with, and as leave enough calls
    for a rollout."""
    count = 1
    if step.context.environment is None:
        count = max(step.context.samples - len(of_this_rung(state)), 1)
    if calls_for(model_of(step, step.context.model), count) > 1:
        count = min(count, max(int(calls_to_spare(await measure_progress(state, step))), 1))
    attempts, stopped = await draw(state, step, count, state["lessons"])
    return await take_samples(state, step, attempts, stopped)


@ladder_node
async def look_up(state: AutoState, step: Step[AutoContext]) -> Update:
    """Let Reflexion look for evidence, and end the run if that supports its answer. Where the model fails at that, what
    was asked is looked up as it stands."""
    shown = state["messages"]
    if lessons := [lesson["text"] for lesson in state["lessons"]]:
        shown = [lessons_message(lessons), *shown]
    settings = inner_settings(ReflexionContext, step)
    result = await reflexion.graph.ainvoke({"messages": step.whole(shown)}, context=settings)
    step.meter.add(result["usage"])
    outcome = outcome_in_run(result["outcome"], step)
    sources = result["sources"]
    if result["answer"] is None:
        if not result["usage"]["parse_failures"]:
            may_climb = outcome["status"] == "failed" and rungs_left(state, step)
            return climbed(state, step) if may_climb else {"outcome": outcome}
        sources, _ = await find(step, state["run_id"], [words_of(state["messages"][-1])])
    evidence = LookedUp(answer=result["answer"] or "", sources=sources, said=result["messages"][-1].id)
    if rung := rung_of(state):
        evidence["rung"] = rung
    evidence["declined"] = outcome.get("answered") is False
    if support := result.get("support"):
        evidence["support"] = support
    step.emit("evidence", answer=evidence["answer"], sources=len(evidence["sources"]), reason=outcome["reason"])
    limit = outcome.get("limit")
    if limit and limit["name"] == "max_rounds":
        limit = None
    update: Update = {"evidence": evidence, "limit": limit}
    return {**update, "outcome": outcome} if outcome["status"] == "solved" else update


@stage_node("search")
async def search(state: AutoState, step: Step[AutoContext]) -> Update:
    """Grow the tree by one job; the first makes its root."""
    answers = distinct(state["samples"])
    evidence = state["evidence"]
    if evidence and evidence["answer"]:
        answers.append(evidence["answer"])
    tree = await widening_search(state, step, answers)
    if not state["tree"]:
        return plant_tree(state, step, tree, evidence["sources"] if evidence else [])
    update = await SearchStep(state, step, tree).run()
    if update.get("best", state["best"]) != state["best"]:
        update["better"] = rollouts(state)
    ended = update.pop("outcome", None)
    if ended is None:
        return update
    if ended["status"] in ("solved", "failed"):
        return update | {"outcome": ended}
    step.emit("search_over", why=ended["reason"])
    return update | {"search_over": ended["reason"], "limit": ended.get("limit")}


@stage_node("conclude")
async def conclude(state: AutoState, step: Step[AutoContext]) -> Update:
    """Ask for the answer that the best trajectory leads to, where the tree has come to none."""
    text, reward = await answer_from(state, step, await widening_search(state, step), None)
    world = await environment_of(step.context) or PLAIN
    attempt = Attempt(text=text, answer=text, normal=world.normal(text), reward=reward, observation="")
    step.emit("sample", answer=text, reward=reward)
    taken = await take_samples(state, step, [attempt] if text else [], None)
    return {"concluded": True} | taken


@stage_node("trial")
async def trial(state: AutoState, step: Step[AutoContext]) -> Update:
    """Reflect on what has failed, and answer once more with the lesson."""
    lesson = await reflect(state, step)
    attempts, stopped = await draw(state, step, 1, [*state["lessons"], lesson])
    return {"lessons": [lesson], "trials": state["trials"] + 1} | await take_samples(state, step, attempts, stopped)


@ladder_node
async def climb(state: AutoState, step: Step[AutoContext]) -> Update:
    """Let the next model of the ladder take over."""
    return climbed(state, step)


@ladder_node
async def finish(state: AutoState, step: Step[AutoContext]) -> Update:
    """Answer with the best that was found; with a ladder the outcome says which model has answered."""
    return with_bills(state, step, await answer_with_best(state, step))


async def take_samples(
    state: AutoState, step: Step[AutoContext], attempts: list[Attempt], stopped: LimitReached | ModelFailed | None
) -> Update:
    """Take samples in, and end the run if one of them is right."""
    update: Update = {"samples": attempts}
    right = [attempt for attempt in attempts if is_right(attempt)]
    if right:
        number = len(state["samples"]) + len(attempts)
        environment = await environment_of(step.context)
        if environment and right[0].get("rewarded", True):
            return update | stop_solved(environment.verifier, f"sample {number} has a reward of 1")
        return update | stop_solved("verifiers", f"the verifiers accept sample {number}")
    if isinstance(stopped, LimitReached):
        update["limit"] = stopped.limit
    return update


class Chosen(Ended):
    """What the router after `choose` has to know."""

    turns: list[Turn]


def to_stage(state: Chosen) -> str:
    """Go where the last turn says, or to the end."""
    return ENDED if state["outcome"] else f"{state['turns'][-1]['stage']} pays most"


builder = strategy_graph(
    AutoState,
    context_schema=AutoContext,
    input_schema=ActingInput,
    output_schema=AutoOutput,
    employs=lambda _: {"look_up": {"reflexion": reflexion.graph}},
)
builder.add_node(
    "begin",
    begin(
        "auto",
        AutoContext,
        enter,
        **FRESH,
        samples=Overwrite([]),
        evidence=None,
        turns=Overwrite([]),
        search_over="",
        limit=None,
        concluded=False,
        trials=0,
        better=0,
        longest={},
        rungs=[],
        reward=None,
    ),
)
builder.add_node("choose", choose)
builder.add_node("sample", sample)
builder.add_node("look_up", look_up)
builder.add_node("climb", climb)
builder.add_node("search", search)
builder.add_node("conclude", conclude)
builder.add_node("trial", trial)
builder.add_node("finish", finish)
builder.add_edge("begin", "choose")
builder.add_conditional_edges(
    "choose", to_stage, {ENDED: "finish", **{f"{stage} pays most": stage for stage in STAGES}}
)
for stage in STAGES:
    builder.add_conditional_edges(stage, *unless_ended("choose"))

graph = builder.compile(name="auto")
