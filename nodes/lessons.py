"""Lessons: what a trial is told of earlier ones, and what later runs are told of this one."""

from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from langgraph.runtime import get_runtime

from nodes.step import Step
from prompts import react as prompts
from state.context import TrialsContext
from state.errors import Misuse
from state.trial import Trial

KEPT = 100
"""Reflections of one namespace that are looked through for those to start with."""


def advice(trials: Sequence[Trial], earlier: Sequence[str], context: TrialsContext) -> str:
    """What the next trial is told, as the settings say: reflections, the last attempt, both or nothing.

    Args:
        trials: The trials of this run.
        earlier: Reflections of earlier runs of similar tasks.
        context: `reflection` and `memory_size`.
    """
    parts = []
    lessons = [*earlier, *(trial["reflection"] for trial in trials if trial["reflection"])][-context.memory_size :]
    if lessons and context.reflection in ("reflexion", "last_attempt_and_reflexion"):
        parts.append(prompts.LESSONS.format(lessons="\n".join(f"- {lesson}" for lesson in lessons)))
    if trials and context.reflection in ("last_attempt", "last_attempt_and_reflexion"):
        parts.append(prompts.LAST_ATTEMPT.format(attempt=trials[-1]["attempt"]))
    return "".join(parts)


async def recall(step: Step[TrialsContext], question: str) -> list[str]:
    """The reflections that earlier runs have kept under the namespace of the settings; none without one.

    The store's own index finds those for similar tasks; without an index they are the latest.

    Raises:
        Misuse: if the settings ask for them and the graph has no store.
    """
    if step.context.experience is None:
        return []
    found = await _store().asearch(_namespace(step), query=question, limit=KEPT)
    if not any(item.score for item in found):
        found = sorted(found, key=lambda item: item.created_at, reverse=True)
    lessons = [str(item.value["reflection"]) for item in found[: step.context.memory_size]]
    step.emit("recalled", lessons=len(lessons))
    return lessons[::-1]


async def keep(step: Step[TrialsContext], question: str, reflection: str) -> None:
    """Keep a reflection for later runs, if the settings say so; the same one is kept once, an empty one never."""
    if step.context.experience is None or not reflection.strip():
        return
    key = str(uuid5(NAMESPACE_OID, f"{question}\n{reflection}"))
    await _store().aput(_namespace(step), key, {"question": question, "reflection": reflection})


def _namespace(step: Step[TrialsContext]) -> tuple[str, str]:
    # A dot separates the parts of a namespace in some stores.
    return ("experience", (step.context.experience or "").replace(".", "_"))


def _store() -> Any:
    store = get_runtime().store
    if store is None:
        raise Misuse("experience needs a store: compile the graph with one, builder.compile(store=InMemoryStore())")
    return store
