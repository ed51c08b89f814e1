"""Reflexion's trials (Shinn et al. 2023, arXiv 2303.11366, algorithm 1): attempt, evaluate, reflect, attempt again.

    begin -> attempt -> evaluate -> reflect -> attempt -> ... -> finish

`attempt` lets the actor, another strategy, try the task from the start; `evaluate` asks the environment's reward, or
a judge that does not know the right answer; `reflect` draws a lesson from a failure, which the next trial is shown.
"""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph

from environments.base import Task
from environments.metrics import exact_match
from graphs import chain_of_thought, react
from nodes.agent import environment_of
from nodes.attempts import attempt_text, judge, of_this_run, reflect_on, settings_for, with_tests
from nodes.lessons import Learned, advice
from nodes.step import Step, Update, node, stop
from nodes.transcript import request_text
from nodes.turn import begin, end, unless_ended
from state.context import ActingContext, ChainOfThoughtContext, ReactContext, TrialsContext
from state.errors import Misuse
from state.run import Output, RunState
from state.trial import ActingInput, Trial

ACTORS: dict[str, tuple[Any, type[ActingContext]]] = {
    "react": (react.graph, ReactContext),
    "chain_of_thought": (chain_of_thought.graph, ChainOfThoughtContext),
}


class TrialsState(RunState, ActingInput):
    """State of a run; the trials are its artefact.

    `given` is the task, `request` what is asked, quoted, and `earlier` are lessons of earlier runs. `said` holds
    the id of each trial's answer, under which it may have been streamed.
    """

    given: dict[str, Any] | None
    request: str
    earlier: list[str]
    trials: list[Trial]
    said: list[str | None]


class TrialsOutput(Output):
    """What a run returns."""

    trials: list[Trial]


async def prepare(state: Mapping[str, Any], step: Step[TrialsContext]) -> Update:
    """Refuse a task that is not of the environment."""
    *conversation, last = state["messages"]
    asked, task, environment = last.text, state.get("task"), await environment_of(step.context)
    if step.context.evaluator == "exact_match" and not (task or {}).get("gold"):
        raise Misuse("evaluator exact_match needs a task with its right answer: give task={..., 'gold': ...}")
    if environment:
        task = task or {"id": "", "question": asked}
        environment.start(cast(Task, task))
        if step.context.environment_name == "programming":
            task = await with_tests(step, task)
        asked = environment.public(environment.start(cast(Task, task)))
    request = request_text([*conversation, HumanMessage(asked)])
    earlier = state["recalled"]
    return {"given": task, "request": request, "earlier": earlier, "recalled": [], "task": None, "advice": None}


@node(TrialsContext)
async def attempt(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Let the actor try the task from the start, with what was learned so far."""
    trials = state["trials"]
    if len(trials) >= step.context.max_trials:
        return stop("limit_reached", f"max_trials={step.context.max_trials} reached (trials={len(trials)})")
    step.meter.check()
    before, (actor, schema) = step.meter.usage, ACTORS[step.context.actor]
    told = advice(trials, state["earlier"], step.context)
    inputs = {"messages": state["messages"], "task": state["given"], "advice": told}
    result = await actor.ainvoke(inputs, context=settings_for(schema, step))
    step.meter.add(result["usage"])
    reason, spent = of_this_run(result["outcome"]["reason"], step, before)
    if result["answer"] is None and not (result.get("steps") or result.get("samples")):
        return stop("limit_reached" if spent else "failed", reason)
    trial = Trial(
        trial=len(trials) + 1,
        answer=result["answer"],
        reward=result["reward"],
        score=None,
        solved=False,
        outcome=f"{result['outcome']['status']}: {reason}",
        attempt=attempt_text(result),
        reflection="",
    )
    return {"trials": [*trials, trial], "said": [*state["said"], result["messages"][-1].id]}


@node(TrialsContext)
async def evaluate(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Ask whether the last trial has solved the task, and end the run if it has."""
    *earlier, trial = state["trials"]
    if uses_judge(step.context) and trial["answer"] is not None:
        judged = await judge(step, state["request"], trial["attempt"])
        solved = judged.solved and judged.score >= step.context.min_score
        trial = {**trial, "score": judged.score, "solved": solved}
    elif not uses_judge(step.context):
        reward = matches(state, trial) if step.context.evaluator == "exact_match" else trial["reward"]
        trial = {**trial, "reward": reward, "solved": reward is not None and reward >= 1}
    told = {name: trial[name] for name in ("trial", "answer", "reward", "score", "solved")}
    step.emit("trial", **told)
    update: Update = {"trials": [*earlier, trial]}
    return update | (stop("solved", f"solved in trial {trial['trial']}") if trial["solved"] else {})


@node(TrialsContext)
async def reflect(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Draw a lesson from the failed trial, where the next trial would be shown one."""
    *earlier, trial = state["trials"]
    if step.context.reflection in ("none", "last_attempt") or trial["trial"] >= step.context.max_trials:
        return {}
    verdict = f"This did not solve the task. {trial['outcome']}"
    lesson = await reflect_on(step, state["request"], trial["attempt"], verdict)
    step.emit("reflection", trial=trial["trial"], reflection=lesson)
    return {"trials": [*earlier, {**trial, "reflection": lesson}]}


@node(TrialsContext)
async def finish(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Answer with the best trial: a solved one, else that of the highest reward or score, of equals the last."""
    answered = [trial for trial in state["trials"] if trial["answer"] is not None]
    best = max(answered, key=rank, default=None)
    answer = AIMessage(best["answer"] or "", id=state["said"][best["trial"] - 1]) if best else None
    learned = [Learned(trial["reflection"], f"{trial['attempt']}\n{trial['outcome']}") for trial in state["trials"]]
    return await end(state, step, answer, learned)


def rank(trial: Trial) -> tuple[bool, float, int]:
    """What makes one trial better than another."""
    known = [value for value in (trial["reward"], trial["score"]) if value is not None]
    return trial["solved"], max(known, default=-1.0), trial["trial"]


def matches(state: TrialsState, trial: Trial) -> float:
    """1 if a trial's answer is the right one after normalisation, else 0."""
    return exact_match(trial["answer"] or "", (state["given"] or {})["gold"])


def uses_judge(context: TrialsContext) -> bool:
    """Whether a judge evaluates, not the environment."""
    return context.evaluator == "judge" or (context.evaluator is None and context.environment is None)


builder: StateGraph[Any, TrialsContext, Any, Any] = StateGraph(
    TrialsState, context_schema=TrialsContext, input_schema=ActingInput, output_schema=TrialsOutput
)
builder.add_node("begin", begin("trials", TrialsContext, prepare, trials=[], said=[]))
builder.add_node("attempt", attempt)
builder.add_node("evaluate", evaluate)
builder.add_node("reflect", reflect)
builder.add_node("finish", finish)
builder.add_edge(START, "begin")
builder.add_edge("begin", "attempt")
builder.add_conditional_edges("attempt", unless_ended("evaluate"), ["evaluate", "finish"])
builder.add_conditional_edges("evaluate", unless_ended("reflect"), ["reflect", "finish"])
builder.add_conditional_edges("reflect", unless_ended("attempt"), ["attempt", "finish"])
builder.add_edge("finish", END)

graph = builder.compile(name="trials")
