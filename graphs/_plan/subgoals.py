"""The sub-goals of a plan: whether they fit together, which are ready, what came of them, how others are shown them."""

import re
from collections import defaultdict
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from reflective_agents.nodes.asking.transcript import around, instructions, material, quoted
from reflective_agents.nodes.delegating.forms import Plan, PlannedGoal
from reflective_agents.nodes.delegating.state import Report, Subgoal
from reflective_agents.nodes.delegating.workers import Task, aim_text, failure
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.references import MARK, number_together
from reflective_agents.nodes.evidence.sources import NO_SOURCES, Source, Sources
from reflective_agents.prompts import plan as prompts
from reflective_agents.prompts import search as search_prompts
from reflective_agents.text.labels import without_label


def flaw(made: Plan, earlier: Sequence[Subgoal]) -> str | None:
    """Say what is wrong with a plan, in words for the model: a repeated id, an unknown need, or a cycle.

    Args:
        made: The plan.
        earlier: The sub-goals of earlier plans.
    """
    used = {goal["id"] for goal in earlier}
    twice: list[str] = []
    for goal in made.subgoals:
        if goal.id in used:
            twice.append(goal.id)
        used.add(goal.id)
    if twice:
        return f"each sub-goal needs an id of its own that was not used yet; used twice: {', '.join(twice)}"
    needs = {goal.id: goal.needs for goal in made.subgoals}
    done = [goal["id"] for goal in earlier if goal["status"] == "done"]
    unknown = set(chain.from_iterable(needs.values())).difference(needs, done)
    if unknown:
        names = ", ".join(sorted(unknown))
        return f"needs may only name other sub-goals of the plan, or such as are done; there is no {names}"
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as circle:
        return f"sub-goals must not need each other in a circle: {' -> '.join(circle.args[1])}"
    return None


def planned(goal: PlannedGoal, number: int, plan: int, worker: str) -> Subgoal:
    """Create a sub-goal of a new plan, before any work on it."""
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
    """Return the sub-goals that can be worked on now: open ones whose needs are all done."""
    done = {goal["id"] for goal in goals if goal["status"] == "done"}
    return [goal for goal in goals if goal["status"] == "open" and done >= set(goal["needs"])]


def is_any_done(goals: Sequence[Subgoal]) -> bool:
    """Tell whether a sub-goal has been reached, so that there is something to answer from."""
    return any(goal["status"] == "done" for goal in goals)


def ids_of_failed(goals: Sequence[Subgoal]) -> str:
    """Name the sub-goals that have failed."""
    return ", ".join(goal["id"] for goal in goals if goal["status"] == "failed")


def with_report(goal: Subgoal, report: Report, wave: int) -> Subgoal:
    """Update a sub-goal with its worker's report. A worker fails if it gives no answer, says that its part cannot be
    done, or has found nothing; what it says of that may still be a part of the answer."""
    after: Subgoal = {**goal, "wave": wave, "usage": report["usage"]}
    answer = report["answer"]
    if answer is None:
        return {**after, "status": "failed", "reason": failure(report)}
    if cannot_be_done(without_label(answer, "final", "answer")):
        return {**after, "status": "failed", "reason": " ".join(answer.split())}
    after["answer"], after["said"] = answer, report["said"]
    if "passages" in report:
        after["passages"] = report["passages"]
    if not report.get("answered", True):
        return {**after, "status": "failed", "reason": " ".join(split_references(answer)[0].split())}
    return {**after, "status": "done", "reason": report["reason"]}


def cannot_be_done(answer: str) -> bool:
    """Tell whether a worker labels its part as impossible: with a colon, or by the label alone in capitals."""
    label = prompts.IMPOSSIBLE
    return bool(re.match(rf"\W*(?:(?i:{label})[*_`\s]*[:：]|{label}\W*$)", answer))


def as_task(goal: Subgoal, goals: Sequence[Subgoal], conversation: Sequence[BaseMessage]) -> Task:
    """Turn a sub-goal into its worker's task: the aim and the results it needs first, the goal last."""
    needed = [each for each in goals if each["id"] in goal["needs"]]
    shown, sources = numbered(needed, MARK)
    text = prompts.MATERIAL.format(
        impossible=prompts.IMPOSSIBLE,
        aim=around("aim", aim_text(conversation), failure=prompts.IMPOSSIBLE),
        reports=prompts.KNOWN.format(reports=progress_text(shown)) if shown else "",
    )
    if sources:
        text += f"\n{search_prompts.CITED_REPORTS}"
    messages: list[AnyMessage] = [instructions(prompts.WORK), material(text), HumanMessage(goal["goal"])]
    return Task(
        number=goal["number"],
        name=goal["id"],
        task=goal["goal"],
        messages=messages,
        sources=[source.url for source in sources.values()],
    )


def numbered(goals: Sequence[Subgoal], mark: str = "", earlier: Sources = NO_SOURCES) -> tuple[list[Subgoal], Sources]:
    """Return sub-goals whose answers cite under one numbering, which goes on from earlier sources, and all sources."""
    texts, sources = number_together([goal["answer"] or "" for goal in goals], mark, earlier)
    shown: list[Subgoal] = []
    for goal, text in zip(goals, texts, strict=True):
        shown.append({**goal, "answer": text if goal["answer"] else None})
    return shown, sources


def sources_of(goals: Sequence[Subgoal], earlier: Sources = NO_SOURCES) -> dict[int, Source]:
    """Return the sources that the answers of sub-goals cite, under their common numbers."""
    _, sources = numbered(goals, earlier=earlier)
    passages: defaultdict[str, list[str]] = defaultdict(list)
    for goal in goals:
        for url, text in goal.get("passages", {}).items():
            if text not in passages[url]:
                passages[url].append(text)
    return {number: source._replace(passages=tuple(passages[source.url])) for number, source in sources.items()}


def progress_text(goals: Sequence[Subgoal]) -> str:
    """Show sub-goals and their results as material for the planner and for other workers."""
    parts = []
    for goal in goals:
        parts.append(quoted("subgoal", goal["goal"], id=goal["id"], status=goal["status"]))
        if goal["status"] == "failed":
            parts.append(quoted("failure", goal["reason"], id=goal["id"]))
        elif goal["answer"]:
            parts.append(quoted("report", goal["answer"], id=goal["id"]))
    return "\n".join(parts)
