"""Lessons that outlive a run: looked up in the memory of a namespace when it begins, and kept there when it ends.

A lesson is a reflection in the memory stream, and what it rests on an observation, which is thereby archived: it is
never recalled itself, and always found through the lesson.
"""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from langgraph.runtime import get_runtime

from reflective_agents.memory import rankings
from reflective_agents.nodes.asking.transcript import around, quoted
from reflective_agents.nodes.remembering.lessons import Learned
from reflective_agents.nodes.remembering.remember import open_memory
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.users import authenticated_user
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.memories import LEAST, Kind, Memory, memory_id, new_memory
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.run import RunState

if TYPE_CHECKING:
    from reflective_agents.memory.stream import MemoryStream

MOST = 1000
"""Memories of one namespace, lessons and what they rest on; beyond that the lessons used least are forgotten."""
LESSONS: tuple[Kind, ...] = ("reflection",)
WEIGHT = 5.0
"""Importance of a lesson; what it rests on has the least."""
UNTESTED = "untested; "
"""What marks a lesson of a run whose answer nothing has verified."""
LONGEST_LESSON, LONGEST_TASK, LONGEST_ATTEMPT = 2000, 500, 3000
"""Characters of each that are kept."""


async def recall(step: Step[Context], question: str) -> list[str]:
    """Recall the lessons of earlier runs that fit a question best, best last; none unless the settings ask for them.

    If a limit or a failing model prevents it, this is logged, and the run goes on without lessons.

    Raises:
        Misuse, UnknownModel, MissingKey: as `nodes.remembering.remember.open_memory`.
    """
    if step.context.experience is None:
        return []
    try:
        stream = await _open(step, step.context.experience)
        by_fit, most = rankings.named("hybrid", recency=0, importance=0), step.context.memory_size
        memories = await stream.retrieve(question, k=most, now=time.time(), ranking=by_fit, kinds=LESSONS)
    except (LimitReached, ModelFailed) as reason:
        step.emit("recalled", lessons=0, reason=str(reason))
        return []
    lessons = [scored.memory["text"] for scored in reversed(memories)]
    step.emit("recalled", lessons=len(lessons), texts=lessons, kept_in=kept_in())
    return lessons


async def keep(step: Step[Context], state: RunState, learned: Sequence[Learned], outcome: Outcome) -> None:
    """Keep the lessons of a run with what they rest on, if the settings ask for it: the task, the attempt and the
    outcome.

    The same lesson is kept once, an empty one never. It is marked as untested until a run that has drawn it is solved.
    Where a limit or a failing model stands in the way, that is told.
    """
    lessons = {lesson_id(item.lesson): item for item in learned if item.lesson.strip()}
    if step.context.experience is None or not lessons:
        return
    try:
        stream = await _open(step, step.context.experience)
        stored = {memory["id"]: memory["text"] for memory in await stream.get(lessons)}
        proven = [key for key in stored if outcome["status"] == "solved" and f"({UNTESTED}" in stored[key]]
        for key in proven:
            await stream.delete(key)
        new = [item for key, item in lessons.items() if key not in stored or key in proven]
        change = await stream.add([*_memories(state, new, outcome)])
        if change.forgotten or proven:  # what no lesson rests on any more is archived no longer
            for observation in await stream.latest(MOST, ["observation"]):
                await stream.delete(observation["id"])
    except (LimitReached, ModelFailed) as reason:
        step.emit("not_kept", lessons=len(lessons), reason=str(reason))
        return
    step.emit("kept", lessons=len(new))


def lesson_id(lesson: str) -> str:
    """Return the id of a lesson in every memory; case and white space do not matter."""
    return memory_id(" ".join(["lesson", *lesson.casefold().split()]))


def kept_in() -> str:
    """Describe where memories are kept, in words for the user."""
    return "this process, until it ends" if get_runtime().store is None else "the store of the graph"


def experience_of(namespace: str) -> str:
    """Return the owner of the lessons of a namespace."""
    return f"experience/{namespace}"


async def _open(step: Step[Context], name: str) -> "MemoryStream":
    user = authenticated_user()
    owner = experience_of(f"{quote(user, safe='')}/{name}" if user else name)
    return await open_memory(step, owner, max_memories=MOST)


def _memories(state: RunState, new: Sequence[Learned], outcome: Outcome) -> Iterator[Memory]:
    now, task = time.time(), " ".join(state["messages"][-1].text.split())[:LONGEST_TASK]
    mark = "" if outcome["status"] == "solved" else UNTESTED
    for number, learned in enumerate(new):
        evidence = "\n".join(
            [
                quoted("task", task),
                around("attempt", learned.attempt[-LONGEST_ATTEMPT:]),
                quoted("outcome", f"{outcome['status']}: {outcome['reason']}"),
            ]
        )
        rests_on = new_memory(evidence, created=now, importance=LEAST, key=f"{state['run_id']} lesson {number}")
        yield rests_on
        lesson = learned.lesson.strip()
        text = f"{lesson[:LONGEST_LESSON]} ({mark}from the task: {task})"
        memory = new_memory(text, created=now, kind="reflection", importance=WEIGHT, evidence=[rests_on["id"]])
        yield {**memory, "id": lesson_id(lesson)}
