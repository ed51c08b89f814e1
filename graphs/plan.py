"""Plan and act: sub-goals are planned, workers reach them, and what fails leads to another plan.

    begin -> plan -> assign => work => collect -> assign | plan | finish

`plan` breaks the request into sub-goals that may need each other's results (compare Plan-and-Solve, Wang et al. 2023,
arXiv 2305.04091, and ReWOO, Xu et al. 2023, arXiv 2305.18323, whose planner hands results on in the same way). `assign`
sends all that are ready to workers at once, each of them a whole strategy; `collect` takes in their reports. When
nothing is ready any more, `finish` answers from what was found, unless something has failed: then `plan` plans anew.
"""

from collections.abc import Sequence
from functools import cache, partial

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.types import Overwrite
from pydantic import Field, create_model

from reflective_agents.graphs import graph_of
from reflective_agents.graphs._plan.subgoals import (
    as_task,
    flaw,
    ids_of_failed,
    is_any_done,
    numbered,
    planned,
    progress_text,
    ready,
    sources_of,
    with_report,
)
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.nodes.acting.own_agent import drawable
from reflective_agents.nodes.answer_stream import AnswerStream
from reflective_agents.nodes.asking.chat import ask, model_of, write
from reflective_agents.nodes.delegating.forms import Plan, PlannedGoal
from reflective_agents.nodes.delegating.state import Assignment, PlanOutput, PlanState, Report, Subgoal
from reflective_agents.nodes.delegating.workers import (
    branch,
    brief,
    charge,
    check_worker,
    hand_over,
    hands_over,
    run_agent,
    run_strategy,
)
from reflective_agents.nodes.evidence.citation_reader import CitationReader
from reflective_agents.nodes.evidence.citations import resolve, with_references
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.evidence.sources import Sources, thread_sources
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.step import Step, Update, node, stop, stop_at
from reflective_agents.nodes.strategy import Employed
from reflective_agents.nodes.turn import ENDED, begin, end, strategy_graph, unless_ended
from reflective_agents.prompts import plan as prompts
from reflective_agents.prompts.search import TODAY
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.outcome import pluralize, stopped
from reflective_agents.state.run import Input
from reflective_agents.state.settings import employable
from reflective_agents.state.settings.plan import LEVEL, PlanContext

GRAPHS = {name: graph_of(name) for name in employable(LEVEL)}
"""The strategies that a worker may work by."""
READY, FAILED = "sub-goals are ready", "one has failed"


async def prepare(_: PlanState, step: Step[PlanContext]) -> Update:
    """Refuse settings that no worker could work with."""
    if step.context.agent is not None:
        return {}
    await check_worker(step, step.context.worker, worker_settings(step.context))
    return {}


@node(PlanContext)
async def plan(state: PlanState, step: Step[PlanContext]) -> Update:
    """Plan the sub-goals; after a failure, those that are to replace what is not done."""
    earlier = state["subgoals"]
    number = state["plans"] + 1
    most = step.context.max_subgoals
    progress = [HumanMessage(prompts.REPLAN.format(progress=progress_text(earlier)))] if earlier else []
    date = TODAY.format(today=today())
    prompt = prompts.PLAN.format_messages(today=date, conversation=state["messages"], progress=progress, most=most)
    form = plan_of(most, least=0 if is_any_done(earlier) else 1)
    made = await ask(step, step.context.model, prompt, form, lambda value: flaw(value, earlier))
    # What is still open waits for what has failed, and would never be ready.
    dropped: list[Subgoal] = [{**goal, "status": "dropped"} for goal in earlier if goal["status"] == "open"]
    new: list[Subgoal] = []
    for index, made_goal in enumerate(made.subgoals, len(earlier) + 1):
        goal = planned(made_goal, index, number, step.context.worker)
        step.emit("subgoal", number=goal["number"], goal=goal["goal"], needs=goal["needs"], status=goal["status"])
        new.append(goal)
    update: Update = {"subgoals": [*dropped, *new], "plans": number}
    return update if new else update | stop("answered", f"the answer does without: {ids_of_failed(earlier)}")


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
    if context.agent is not None:
        return await run_agent(context.agent, sent, context)
    return await run_strategy(GRAPHS[context.worker], context.worker, sent, context, worker_settings(context))


@node(PlanContext)
async def collect(state: PlanState, step: Step[PlanContext]) -> Update:
    """Take in what the workers report, and see whether the run is over."""
    charge(step, state["reports"])
    reports = {report["number"]: report for report in state["reports"]}
    goals: list[Subgoal] = []
    worked_on: list[Subgoal] = []
    for goal in state["subgoals"]:
        if goal["number"] in reports:
            goal = with_report(goal, reports[goal["number"]], state["waves"])
            answer = brief(goal["answer"] or "")
            step.emit("subgoal", number=goal["number"], status=goal["status"], answer=answer, reason=goal["reason"])
            worked_on.append(goal)
        goals.append(goal)
    return {"subgoals": worked_on, **verdict(goals, state["plans"], step)}


@node(PlanContext)
async def finish(state: PlanState, step: Step[PlanContext]) -> Update:
    """Answer from what was found. Where no further call can be had, the answers that were found are the answer."""
    done = [goal for goal in state["subgoals"] if goal["answer"] is not None]
    if not done:
        return await end(state, step, None)
    ended = state["outcome"]
    try:
        answer = await synthesis(state, step)
    except (LimitReached, ModelFailed) as error:
        answer = join_answers(done, thread_sources(state["messages"]))
        # What has ended the run before says more than the call that it left no room for.
        if ended and ended["status"] == "answered":
            ended = stopped(error)
    writer = model_of(step, step.context.model)
    final: PlanState = {**state, "outcome": ended}
    evidence = Evidence(sources_of(state["subgoals"], thread_sources(state["messages"])))
    return await end(final, step, answer, model=writer, evidence=evidence)


async def synthesis(state: PlanState, step: Step[PlanContext]) -> AIMessage:
    """Write the answer from the results. It cites their sources, numbered once, and code lists them."""
    _, sources = numbered(state["subgoals"], earlier=thread_sources(state["messages"]))
    listener = AnswerStream(step, partial(CitationReader, sources))
    reply = await write(step, step.context.model, answer_prompt(state), listener)
    found = [goal["answer"] or "" for goal in state["subgoals"]]
    conversation = [message.text for message in state["messages"]]
    shown = "\n".join([*found, *conversation])
    checked = resolve(reply.text, sources, shown, streamed=listener.has_begun)
    if checked.wrong:
        step.emit("not_found", sources=checked.wrong)
    return AIMessage(checked.text, id=await listener.end(checked.text))


def employs(context: PlanContext) -> Employed:
    """Return the graph that the worker works by."""
    if context.agent is None:
        return {"work": {context.worker: GRAPHS[context.worker]}}
    return {"work": drawable(context.agent)}


def worker_settings(context: PlanContext) -> JsonObject:
    """Return the settings of the worker that the run does not have."""
    return context.worker_settings or {}


@cache
def plan_of(most: int, least: int = 1) -> type[Plan]:
    """Build the form of a plan with `least` to `most` sub-goals, which the model is shown."""
    subgoals = (list[PlannedGoal], Field(min_length=least, max_length=most))
    return create_model("Plan", __base__=Plan, __doc__=Plan.__doc__, subgoals=subgoals)


def verdict(goals: Sequence[Subgoal], plans: int, step: Step[PlanContext]) -> Update:
    """Return the outcome if the work is done or no further plan may be made; an empty update otherwise."""
    context = step.context
    if ready(goals):
        return {}
    failed = [goal for goal in goals if goal["status"] == "failed" and goal["plan"] == plans]
    if not failed:
        done = sum(goal["status"] == "done" for goal in goals)
        numbers = f"{pluralize(done, 'sub-goal')}, {pluralize(plans, 'plan')}"
        return stop("answered", f"all that was planned is done: {numbers}")
    if plans > context.max_replans:
        last = f"sub-goal {failed[-1]['id']} has failed: {failed[-1]['reason']:.300}"
        return stop_at(context.limit("max_replans", spent=plans - 1), last)
    # Without an answer yet there is nothing to lose by going on.
    if step.meter.calls_left < 3 and any(goal["answer"] for goal in goals):
        limit = step.meter.limit("max_model_calls", next_cost=3)
        return stop_at(limit, "that is another plan, its work and the answer")
    return {}


def next_step(state: PlanState) -> str:
    """Route the run on: to the sub-goals that are ready, to another plan, or to its end."""
    if state["outcome"]:
        return ENDED
    return READY if ready(state["subgoals"]) else FAILED


def answer_prompt(state: PlanState) -> list[BaseMessage]:
    """Build the prompt that asks for the answer."""
    goals, _ = numbered(state["subgoals"], earlier=thread_sources(state["messages"]))
    results = progress_text([goal for goal in goals if goal["wave"]])
    return prompts.ANSWER.format_messages(
        today=TODAY.format(today=today()), conversation=state["messages"], results=results
    )


def join_answers(done: Sequence[Subgoal], earlier: Sources) -> AIMessage:
    """Join the answers of the sub-goals, for when no model can be asked to do it."""
    goals, sources = numbered(done, earlier=earlier)
    if len(done) == 1:
        return AIMessage(goals[0]["answer"] or "", id=done[0]["said"])
    parts: list[str] = []
    cited = set[int]()
    for goal in goals:
        body, references = split_references(goal["answer"] or "")
        parts.append(f"{goal['goal']}\n{body}")
        cited.update(references)
    listed = {number: sources[number] for number in sorted(cited)}
    return AIMessage(with_references("\n\n".join(parts), listed))


builder = strategy_graph(
    PlanState, context_schema=PlanContext, input_schema=Input, output_schema=PlanOutput, employs=employs
)
builder.add_node("begin", begin("plan", PlanContext, prepare, subgoals=Overwrite([]), plans=0, waves=0))
builder.add_node("plan", plan)
builder.add_node("assign", assign, destinations={"work": "each sub-goal", "finish": ENDED})
builder.add_node("work", work)
builder.add_node("collect", collect)
builder.add_node("finish", finish)
builder.add_edge("begin", "plan")
builder.add_conditional_edges("plan", *unless_ended("assign"))
builder.add_edge("work", "collect")
builder.add_conditional_edges("collect", next_step, {READY: "assign", FAILED: "plan", ENDED: "finish"})

graph = builder.compile(name="plan")
