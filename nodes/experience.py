"""Lessons that outlive a run: looked up in the memory of a namespace when it begins, and kept there when it ends.

A lesson is a reflection in the memory stream, and what it rests on an observation, which is thereby archived: it is
never recalled itself, and always found through the lesson.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.runtime import get_runtime

from memory.scoring import Weights
from memory.stream import MemoryStream
from nodes.lessons import Learned
from nodes.remember import open_memory
from nodes.step import Step
from nodes.transcript import quoted
from state.errors import LimitReached, ModelFailed
from state.memories import LEAST, Memory, memory_id, new_memory
from state.run import Outcome

MOST = 1000
"""Memories of one namespace, lessons and what they rest on; beyond that the lessons used least are forgotten."""
RELEVANCE = Weights(recency=0, importance=0, relevance=1)
WEIGHT = 5.0
"""Importance of a lesson; what it rests on has the least."""
LONGEST_LESSON, LONGEST_TASK, LONGEST_ATTEMPT = 2000, 500, 3000
"""Characters of each that are kept."""


async def recall(step: Step[Any], question: str) -> list[str]:
    """The lessons of earlier runs that fit a question best, the best one last; none unless the settings ask for them.

    Where a limit or a failing model stands in the way, that is told, and the run goes on without.

    Raises:
        Misuse, UnknownModel, MissingKey: as `nodes.remember.open_memory`.
    """
    if step.context.experience is None:
        return []
    try:
        stream = await _open(step)
        found = await stream.retrieve(question, k=step.context.memory_size, now=time.time(), weights=RELEVANCE)
    except (LimitReached, ModelFailed) as reason:
        step.emit("recalled", lessons=0, reason=str(reason))
        return []
    lessons = [one.memory["text"] for one in reversed(found) if one.memory["kind"] == "reflection"]
    step.emit("recalled", lessons=len(lessons), texts=lessons, kept_in=kept_in())
    return lessons


async def keep(step: Step[Any], state: Mapping[str, Any], learned: Sequence[Learned], outcome: Outcome) -> None:
    """Keep the lessons of a run with what they rest on, if the settings ask for it: the task, the attempt and the
    outcome.

    The same lesson is kept once, an empty one never. Where a limit or a failing model stands in the way, that is told.
    """
    lessons = {lesson_id(one.lesson): one for one in learned if one.lesson.strip()}
    if step.context.experience is None or not lessons:
        return
    try:
        stream = await _open(step)
        known = {one["id"] for one in await stream.get(lessons)}
        new = [one for key, one in lessons.items() if key not in known]
        change = await stream.add([*_memories(state, new, outcome)])
        if change.forgotten:
            await _forget_what_nothing_rests_on(stream)
    except (LimitReached, ModelFailed) as reason:
        step.emit("not_kept", lessons=len(lessons), reason=str(reason))
        return
    step.emit("kept", lessons=len(new))


def lesson_id(lesson: str) -> str:
    """The id of a lesson in every memory; case and white space do not matter."""
    return memory_id(" ".join(["lesson", *lesson.casefold().split()]))


def kept_in() -> str:
    """Where memories are kept, in words for the user."""
    return "this process, until it ends" if get_runtime().store is None else "the store of the graph"


def experience_of(namespace: str) -> str:
    """Whose memory the lessons of a namespace are."""
    return f"experience/{namespace}"


async def _open(step: Step[Any]) -> MemoryStream:
    return await open_memory(step, experience_of(step.context.experience), max_memories=MOST)


def _memories(state: Mapping[str, Any], new: Sequence[Learned], outcome: Outcome) -> Iterator[Memory]:
    now, task = time.time(), " ".join(state["messages"][-1].text.split())[:LONGEST_TASK]
    for place, one in enumerate(new):
        evidence = "\n".join(
            [
                quoted("task", task),
                quoted("attempt", one.attempt[-LONGEST_ATTEMPT:]),
                quoted("outcome", f"{outcome['status']}: {outcome['reason']}"),
            ]
        )
        rests_on = new_memory(evidence, created=now, importance=LEAST, key=f"{state['run_id']} lesson {place}")
        yield rests_on
        lesson = one.lesson.strip()
        text = f"{lesson[:LONGEST_LESSON]} (from the task: {task})"
        made = new_memory(text, created=now, kind="reflection", importance=WEIGHT, evidence=[rests_on["id"]])
        yield {**made, "id": lesson_id(lesson)}


async def _forget_what_nothing_rests_on(stream: MemoryStream) -> None:
    for left in await stream.latest(MOST, ["observation"]):
        await stream.delete(left["id"])
