"""Plan and act: sub-goals are planned, workers reach them, and what fails leads to another plan.

    begin -> plan -> assign => work => collect -> assign | plan | finish

`plan` breaks the request into sub-goals that may need each other's results (compare Plan-and-Solve, Wang et al. 2023,
arXiv 2305.04091, and ReWOO, Xu et al. 2023, arXiv 2305.18323, whose planner hands results on in the same way). `assign`
sends all that are ready to workers at once, each of them a whole strategy; `collect` takes in their reports. When
nothing is ready any more, `finish` answers from what was found, unless something has failed: then `plan` plans anew.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from pydantic import Field, create_model

from graphs import (
    ab_mcts,
    best_of_n,
    chain_of_thought,
    lats,
    rap,
    react,
    reflection,
    reflexion,
    tree_of_thoughts,
    trials,
)
from models.calls import estimate_tokens
from nodes.chat import ask, write
from nodes.step import Step, Update, node, stop
from nodes.subgoals import as_task, flaw, planned, progress_text, ready, settled
from nodes.turn import begin, end, unless_ended
from nodes.workers import branch, brief, charge, check_worker, employ, hand_over, hands_over
from prompts import plan as prompts
from state.cooperation import Assignment, PlanContext, PlanOutput, PlanState, Report, Subgoal
from state.decisions import Plan, PlannedGoal
from state.errors import LimitReached, ModelFailed
from state.run import Input, Outcome

WORKERS = (
    react,
    chain_of_thought,
    reflection,
    reflexion,
    trials,
    lats,
    tree_of_thoughts,
    rap,
    ab_mcts,
    best_of_n,
)
GRAPHS = {module.graph.name: module.graph for module in WORKERS}
"""The strategies that a worker may work by."""


async def prepare(_: Mapping[str, Any], step: Step[PlanContext]) -> Update:
    """Refuse settings that no worker could work with."""
    await check_worker(step, step.context.worker, own(step.context))
    return {}


@node(PlanContext)
async def plan(state: PlanState, step: Step[PlanContext]) -> Update:
    """Plan the sub-goals; after a failure, those that are to replace what is not done."""
    known, number, most = state["subgoals"], state["plans"] + 1, step.context.max_subgoals
    progress = [HumanMessage(prompts.REPLAN.format(progress=progress_text(known)))] if known else []
    prompt = prompts.PLAN.format_messages(conversation=state["messages"], progress=progress, most=most)
    made = await ask(step, step.context.model, prompt, plan_of(most), lambda value: flaw(value, known))
    kept: list[Subgoal] = [{**goal, "status": "dropped"} if goal["status"] == "open" else goal for goal in known]
    new = [planned(goal, place, number, step.context.worker) for place, goal in enumerate(made.subgoals, len(kept) + 1)]
    for goal in new:
        step.emit("subgoal", number=goal["number"], goal=goal["goal"], needs=goal["needs"], status=goal["status"])
    return {"subgoals": [*kept, *new], "plans": number}


@hands_over(PlanContext)
async def assign(state: PlanState, step: Step[PlanContext]) -> Update:
    """Send all sub-goals that are ready to workers at once, each with its share of what is left."""
    goals = state["subgoals"]
    tasks = [as_task(goal, goals, state["messages"]) for goal in ready(goals)]
    keep = estimate_tokens(answer_prompt(state), {}) + step.context.max_answer_tokens
    answered = any(goal["answer"] for goal in goals)
    update = hand_over(state, step, "work", tasks, keep=keep, answered=answered)
    for sent in update.get("goto", ()):
        step.emit("subgoal", number=sent.arg["number"], status="at work")
    return {"waves": state["waves"] + 1} | update


@branch(PlanContext)
async def work(sent: Assignment, context: PlanContext) -> Report:
    """Let a worker try to reach one sub-goal."""
    return await employ(GRAPHS[context.worker], context.worker, sent, context, own(context))


@node(PlanContext)
async def collect(state: PlanState, step: Step[PlanContext]) -> Update:
    """Take in what the workers report, and see whether the run is over."""
    charge(step, state["reports"])
    reports, goals = {report["number"]: report for report in state["reports"]}, list(state["subgoals"])
    for place, goal in enumerate(goals):
        if goal["number"] in reports:
            goals[place] = told = settled(goal, reports[goal["number"]], state["waves"])
            answer = brief(told["answer"] or "")
            step.emit("subgoal", number=told["number"], status=told["status"], answer=answer, reason=told["reason"])
    return {"subgoals": goals, **verdict(goals, state["plans"], step)}


@node(PlanContext)
async def finish(state: PlanState, step: Step[PlanContext]) -> Update:
    """Answer from what was found. Where no further call can be had, the answers that were found are the answer."""
    done = [goal for goal in state["subgoals"] if goal["answer"] is not None]
    if not done:
        return await end(state, step, None)
    ended = state["outcome"]
    try:
        answer = await write(step, step.context.model, answer_prompt(state))
    except (LimitReached, ModelFailed) as reason:
        answer = found(done)
        if ended and ended["status"] == "solved":
            ended = Outcome(
                status="limit_reached" if isinstance(reason, LimitReached) else "failed", reason=str(reason)
            )
    return await end({**state, "outcome": ended}, step, AIMessage(answer.text, id=answer.id))


def own(context: PlanContext) -> dict[str, Any]:
    """The settings that the worker has beside those of the run."""
    return context.worker_settings or {}


@cache
def plan_of(most: int) -> type[Plan]:
    """The form of a plan of at most so many sub-goals, which the model is shown."""
    subgoals: Any = (list[PlannedGoal], Field(min_length=1, max_length=most))
    return create_model("Plan", __base__=Plan, __doc__=Plan.__doc__, subgoals=subgoals)


def verdict(goals: Sequence[Subgoal], plans: int, step: Step[PlanContext]) -> Update:
    """The outcome, if the work is done or no further plan may be made; nothing while it goes on."""
    context, failed = step.context, [goal for goal in goals if goal["status"] == "failed" and goal["plan"] == plans]
    if ready(goals):
        return {}
    if not failed:
        done = sum(goal["status"] == "done" for goal in goals)
        return stop("solved", f"all is done that was planned (sub-goals={done}, plans={plans})")
    if plans > context.max_replans:
        last = f"sub-goal {failed[-1]['id']} has failed: {failed[-1]['reason']:.300}"
        return stop("limit_reached", f"max_replans={context.max_replans} reached; {last}")
    if step.meter.calls_left < 3 and any(goal["answer"] for goal in goals):
        room = "reached, but for the call that is kept for the answer: no room for another plan and its work"
        return stop("limit_reached", f"max_model_calls={context.max_model_calls} {room}")
    return {}


def onward(state: PlanState) -> str:
    """Where the run goes on: with what is ready, with another plan, or at its end."""
    if state["outcome"]:
        return "finish"
    return "assign" if ready(state["subgoals"]) else "plan"


def answer_prompt(state: PlanState) -> list[BaseMessage]:
    """The prompt that asks for the answer."""
    results = progress_text([goal for goal in state["subgoals"] if goal["wave"]])
    return prompts.ANSWER.format_messages(conversation=state["messages"], results=results)


def found(done: Sequence[Subgoal]) -> AIMessage:
    """The answers of the sub-goals, if nobody can be asked to put them together."""
    if len(done) == 1:
        return AIMessage(done[0]["answer"] or "", id=done[0]["said"])
    return AIMessage("\n\n".join(f"{goal['goal']}\n{goal['answer']}" for goal in done))


builder: StateGraph[Any, PlanContext, Any, Any] = StateGraph(
    PlanState, context_schema=PlanContext, input_schema=Input, output_schema=PlanOutput
)
builder.add_node("begin", begin("plan", PlanContext, prepare, subgoals=[], plans=0, waves=0))
builder.add_node("plan", plan)
builder.add_node("assign", assign, destinations=("work", "finish"))
builder.add_node("work", work)
builder.add_node("collect", collect)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "plan")
builder.add_conditional_edges("plan", unless_ended("assign"), ["assign", "finish"])
builder.add_edge("work", "collect")
builder.add_conditional_edges("collect", onward, ["assign", "plan", "finish"])
builder.add_edge("finish", END)

graph = builder.compile(name="plan")
