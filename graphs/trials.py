"""Reflexion's trials (Shinn et al. 2023, arXiv 2303.11366, algorithm 1): attempt, evaluate, reflect, attempt again.

    begin -> attempt -> evaluate -> reflect -> attempt -> ... -> finish

`attempt` lets the actor, another strategy, try the task from the start; `evaluate` asks the environment's reward, or
a judge that does not know the right answer; `reflect` draws a lesson from a failure, which the next trial is shown.
"""

from typing import Annotated, Any, cast

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.types import Overwrite

from reflective_agents.environments.base import Task, task_of, without_gold
from reflective_agents.environments.plain import PLAIN
from reflective_agents.graphs import chain_of_thought, react
from reflective_agents.graphs._trials.attempts import (
    Attempt,
    agents_attempt,
    attempt_text,
    contradicts_itself,
    is_refused,
    judge,
    reflect_on,
    with_tests,
)
from reflective_agents.nodes.acting.agent import environment_of
from reflective_agents.nodes.acting.own_agent import drawable
from reflective_agents.nodes.asking.transcript import request_text
from reflective_agents.nodes.delegating.inner import inner_settings, outcome_in_run
from reflective_agents.nodes.delegating.workers import seed_of_part
from reflective_agents.nodes.evidence.sources import observations_of_result, sources_of, thread_sources
from reflective_agents.nodes.evidence.verifying import Evidence
from reflective_agents.nodes.remembering.lessons import advice
from reflective_agents.nodes.step import Step, Update, node, stop_at, stop_solved
from reflective_agents.nodes.strategy import Employed
from reflective_agents.nodes.turn import begin, end, strategy_graph, unless_ended
from reflective_agents.nodes.verifiers.verdict import is_verified, verify_answer
from reflective_agents.state.errors import Misuse
from reflective_agents.state.families import ActingContext
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.lists import replaced_by
from reflective_agents.state.outcome import UNCHECKED, Appraisal, VerifiedBy, accepts
from reflective_agents.state.run import NOTHING_SPENT, Output, latest
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.state.trial import ActingInput, ActingState, Trial
from reflective_agents.text.joined import joined

ACTORS: dict[str, tuple[Any, type[ActingContext]]] = {
    "react": (react.graph, ReactContext),
    "chain_of_thought": (chain_of_thought.graph, ChainOfThoughtContext),
}


class TrialsState(ActingState):
    """State of a run; the trials are its artefact.

    `given` is the task, `request` what is asked, quoted, and `earlier` are lessons of earlier runs. `said` holds
    the id of each trial's answer, under which it may have been streamed.
    """

    given: Task | None
    request: Annotated[str, DeltaChannel(latest, snapshot_frequency=1000)]
    earlier: list[str]
    trials: Annotated[list[Trial], DeltaChannel(replaced_by("trial"), snapshot_frequency=1000)]
    said: list[str | None]


class TrialsOutput(Output):
    """What a run returns."""

    trials: list[Trial]


async def prepare(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Refuse a task that is not of the environment."""
    *conversation, last = state["messages"]
    question = str(last.text)
    environment = await environment_of(step.context)
    given = state.get("task")
    task = task_of(given, question) if given else None
    if step.context.evaluator == "exact_match" and not (task and task.get("gold")):
        raise Misuse("evaluator exact_match needs a task with its right answer: give task={..., 'gold': ...}")
    if environment:
        task = task or task_of(None, question)
        environment.start(task)
        task = await with_tests(step, environment, task)
        question = environment.public(environment.start(task))
    request = request_text([*conversation, HumanMessage(question)])
    earlier = state.get("recalled", [])
    return {"given": task, "request": request, "earlier": earlier, "recalled": [], "task": None, "advice": None}


@node(TrialsContext)
async def attempt(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Let the actor try the task from the start, with what was learned so far."""
    trials = state["trials"]
    if len(trials) >= step.context.max_trials:
        return stop_at(step.context.limit("max_trials", len(trials)))
    step.meter.check()
    result = await act(step, state, advice(trials, state["earlier"], step.context))
    ended = outcome_in_run(result["outcome"], step)
    if result["answer"] is None and not (result.get("steps") or result.get("samples")):
        return {"outcome": ended}
    trial = Trial(
        trial=len(trials) + 1,
        answer=result["answer"],
        reward=None if step.context.is_judged else result["reward"],
        score=None,
        solved=False,
        outcome=f"{result['outcome']['status']}: {ended['reason']}",
        attempt=result.get("attempt") or attempt_text(result),
        reflection="",
    )
    if is_refused(result, await environment_of(step.context)):
        trial["refused"] = True
    if is_verified(step):
        found = observations_of_result(cast(JsonMapping, result))
        trial["sources"] = Evidence(sources_of(found, thread_sources(state["messages"]))).passages
    return {"trials": [trial], "said": [*state["said"], result["messages"][-1].id]}


async def act(step: Step[TrialsContext], state: TrialsState, advice: str) -> Attempt:
    """Let the actor act, and charge the run with what it spends. Where a judge evaluates, an environment that does not
    need the task's right answer does not see it either."""
    task = state["given"]
    if task and step.context.is_judged:
        task = without_gold(task, await environment_of(step.context))
    if step.context.agent is not None:
        return await agents_attempt(step, state["messages"], task, advice)
    inputs = {"messages": step.whole(state["messages"]), "task": task, "advice": advice}
    actor, schema = ACTORS[step.context.actor]
    settings = inner_settings(schema, step)
    seed = seed_of_part(step.context, len(state["trials"]))
    settings = settings.model_copy(update={"seed": seed, "verifiers": []})  # the trial is evaluated later
    if isinstance(settings, ReactContext):
        settings = settings.model_copy(update={"verify_sources": False})
    result: Attempt = await actor.ainvoke(inputs, context=settings)
    step.meter.add(result.get("usage", NOTHING_SPENT))
    return result


@node(TrialsContext)
async def evaluate(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Ask whether the last trial has solved the task, and end the run if it has."""
    trial: Trial = {**state["trials"][-1]}
    if step.context.is_judged and trial["answer"] is not None and not trial.get("refused"):
        judged = await judge(step, state["request"], trial["attempt"], trial["answer"])
        unsure = contradicts_itself(judged, trial["answer"], step.context.min_score)
        solved = accepts(judged.solved, judged.score, step.context.min_score) and not unsure
        trial.update({"score": judged.score, "critique": judged.reasoning, "solved": solved})
        if unsure:
            trial["unsure"] = True
    elif not step.context.is_judged:
        reward = await matches(state, step, trial) if step.context.evaluator == "exact_match" else trial["reward"]
        trial.update({"reward": reward, "solved": reward is not None and reward >= 1})
    if trial["answer"] is not None and not trial.get("refused"):
        await verify(state, step, trial)
    step.emit("trial", **{name: trial[name] for name in ("trial", "answer", "reward", "score", "solved")})
    update: Update = {"trials": [trial]}
    if not trial["solved"]:
        return update
    by = await verifier(step.context)
    return update | stop_solved(by, why_solved(trial, by))


async def verify(state: TrialsState, step: Step[TrialsContext], trial: Trial) -> None:
    """Add what the verifiers say of a trial, if there are any: it is solved if they accept it, and so does whoever else
    evaluates it. The lower score counts. Where they only rank, they leave to others what is solved."""
    verdict = await verify_answer(step, state["run_id"], state["messages"], trial["answer"] or "", trial.get("sources"))
    if verdict is None:
        return
    scores = grades_of(trial)
    solved = verdict.solves(trial["solved"] if scores else None)
    if verdict.score is not None:
        scores.append(verdict.score)
    feedback = joined([trial.get("critique"), verdict.feedback])
    trial.update({"score": min(scores, default=None), "solved": solved, "critique": feedback, "verified": True})


@node(TrialsContext)
async def reflect(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Draw a lesson from the trial that was not accepted, where the next trial would be shown one."""
    trial = state["trials"][-1]
    if step.context.reflection in ("none", "last_attempt") or trial["trial"] >= step.context.max_trials:
        return {}
    lesson = await reflect_on(step, state["request"], trial)
    step.emit("reflection", trial=trial["trial"], reflection=lesson)
    return {"trials": [{**trial, "reflection": lesson}]}


@node(TrialsContext)
async def finish(state: TrialsState, step: Step[TrialsContext]) -> Update:
    """Answer with the best trial: a solved one, else one whose answer is not refused, else that of the highest reward
    or score, of equals the first."""
    answered = [trial for trial in state["trials"] if trial["answer"] is not None]
    best = max(answered, key=rank, default=None)
    answer = AIMessage(best["answer"] or "", id=state["said"][best["trial"] - 1]) if best else None
    appraisal = appraise(best)
    if best and best.get("verified") and not best["solved"] and step.context.is_decided:
        appraisal = appraisal._replace(by=await verifier(step.context), accepted=False)
    return await end(state, step, answer, appraisal=appraisal)


def grades_of(trial: Trial) -> list[float]:
    """Return the reward and the score of a trial, as far as it has them."""
    return [grade for grade in (trial["reward"], trial["score"]) if grade is not None]


def rank(trial: Trial) -> tuple[bool, bool, float, int]:
    """Return the sort key by which one trial is better than another."""
    grades = grades_of(trial)
    # The score of a verified trial is the lowest of all, and may lie below its reward.
    grade = min(grades, default=-1.0) if trial.get("verified") else max(grades, default=-1.0)
    return trial["solved"], not trial.get("refused"), grade, -trial["trial"]


def appraise(best: Trial | None) -> Appraisal:
    """Return what was said of the best trial, unless it has solved the task."""
    if best is None or best["solved"]:
        return UNCHECKED
    grades = []
    if best["reward"] is not None:
        grades.append(f"a reward of {best['reward']:g}")
    if best["score"] is not None:
        grades.append(f"a score of {best['score']:.2f}")
    return Appraisal(reason=f"the best trial, {best['trial']}, has {' and '.join(grades) or 'no score'}")


def why_solved(trial: Trial, by: VerifiedBy) -> str:
    """Return who says that a trial has solved the task."""
    if by == "verifiers":
        return f"the verifiers accept trial {trial['trial']}"
    if by == "judge":
        return f"the judge accepts trial {trial['trial']} with a score of {trial['score']:.2f}"
    if by == "checks":
        return f"trial {trial['trial']} gives the right answer"
    return f"trial {trial['trial']} has a reward of {trial['reward']:g}"


async def verifier(context: TrialsContext) -> VerifiedBy:
    """Return who says that a trial has solved the task."""
    if context.is_judged:
        return "judge"
    environment = await environment_of(context)
    if environment is None and context.evaluator is None:
        return "verifiers"
    return environment.verifier if environment and context.evaluator != "exact_match" else "checks"


async def matches(state: TrialsState, step: Step[TrialsContext], trial: Trial) -> float:
    """Return 1 if a trial's answer is right, in whatever form, else 0."""
    world = await environment_of(step.context) or PLAIN
    gold = state["given"].get("gold") if state["given"] else None
    assert gold is not None, "begin refuses a task without its right answer"
    return float(world.equal(trial["answer"] or "", gold))


def employs(context: TrialsContext) -> Employed:
    """Return the graph that makes the attempts."""
    if context.agent is None:
        return {"attempt": {context.actor: ACTORS[context.actor][0]}}
    return {"attempt": drawable(context.agent)}


builder = strategy_graph(
    TrialsState, context_schema=TrialsContext, input_schema=ActingInput, output_schema=TrialsOutput, employs=employs
)
builder.add_node("begin", begin("trials", TrialsContext, prepare, trials=Overwrite([]), said=[]))
builder.add_node("attempt", attempt)
builder.add_node("evaluate", evaluate)
builder.add_node("reflect", reflect)
builder.add_node("finish", finish)
builder.add_edge("begin", "attempt")
builder.add_conditional_edges("attempt", *unless_ended("evaluate"))
builder.add_conditional_edges("evaluate", *unless_ended("reflect"))
builder.add_conditional_edges("reflect", *unless_ended("attempt"))

graph = builder.compile(name="trials")
