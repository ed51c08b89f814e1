"""The sub-goals of a plan: whether they fit together, which are ready, what came of them, how others are shown them."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage

from nodes.transcript import quoted, request_text
from nodes.workers import Task, failure
from prompts import plan as prompts
from state.cooperation import Report, Subgoal
from state.decisions import Plan, PlannedGoal


def flaw(made: Plan, known: Sequence[Subgoal]) -> str | None:
    """What is wrong with a plan, in words for the model: an id twice, a need that is not there, a circle.

    Args:
        made: The plan.
        known: The sub-goals of earlier plans.
    """
    ids = [goal.id for goal in made.subgoals]
    used = {goal["id"] for goal in known}
    done = {goal["id"] for goal in known if goal["status"] == "done"}
    if twice := [name for place, name in enumerate(ids) if name in ids[:place] or name in used]:
        return f"each sub-goal needs an id of its own that was not used yet; used twice: {', '.join(twice)}"
    if unknown := sorted({need for goal in made.subgoals for need in goal.needs} - {*ids, *done}):
        return f"needs may only name other sub-goals of the plan, or such as are done; there is no {', '.join(unknown)}"
    try:
        TopologicalSorter({goal.id: goal.needs for goal in made.subgoals}).prepare()
    except CycleError as circle:
        return f"sub-goals must not need each other in a circle: {' -> '.join(circle.args[1])}"
    return None


def planned(goal: PlannedGoal, number: int, plan: int, worker: str) -> Subgoal:
    """A sub-goal of a new plan, before anybody works on it."""
    return Subgoal(
        number=number,
        id=goal.id,
        goal=goal.goal,
        needs=list(dict.fromkeys(goal.needs)),
        plan=plan,
        wave=0,
        worker=worker,
        status="open",
        answer=None,
        said=None,
        reason="",
        usage=None,
    )


def ready(goals: Sequence[Subgoal]) -> list[Subgoal]:
    """The sub-goals that can be worked on now: open ones, all of whose needs are done."""
    done = {goal["id"] for goal in goals if goal["status"] == "done"}
    return [goal for goal in goals if goal["status"] == "open" and done >= set(goal["needs"])]


def settled(goal: Subgoal, report: Report, wave: int) -> Subgoal:
    """A sub-goal after its worker has reported. A worker fails without an answer, or by saying that it has failed."""
    told: Subgoal = {**goal, "wave": wave, "usage": report["usage"]}
    answer = report["answer"]
    if answer is None:
        return {**told, "status": "failed", "reason": failure(report)}
    if answer.lstrip(" *_#").upper().startswith("IMPOSSIBLE"):
        return {**told, "status": "failed", "reason": " ".join(answer.split())}
    return {**told, "status": "done", "reason": report["reason"], "answer": answer, "said": report["said"]}


def as_task(goal: Subgoal, goals: Sequence[Subgoal], conversation: Sequence[BaseMessage]) -> Task:
    """A sub-goal as its worker is told it: the goal last, and before it the aim and the results that it needs."""
    needed = [other for other in goals if other["id"] in goal["needs"]]
    material = prompts.MATERIAL.format(
        aim=quoted("aim", request_text(conversation)),
        reports=prompts.KNOWN.format(reports=progress_text(needed)) if needed else "",
    )
    messages: list[AnyMessage] = [SystemMessage(prompts.WORK), HumanMessage(material), HumanMessage(goal["goal"])]
    return Task(number=goal["number"], name=goal["id"], task=goal["goal"], messages=messages)


def progress_text(goals: Sequence[Subgoal]) -> str:
    """Sub-goals and what came of them, as material for the planner and for other workers."""
    parts = []
    for goal in goals:
        parts.append(quoted("subgoal", goal["goal"], id=goal["id"], status=goal["status"]))
        parts += [quoted("report", goal["answer"], id=goal["id"])] if goal["answer"] else []
        parts += [quoted("failure", goal["reason"], id=goal["id"])] if goal["status"] == "failed" else []
    return "\n".join(parts)
