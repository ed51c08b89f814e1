"""Lessons as text: what a trial is told of earlier ones, and what a run is told of earlier runs."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage

from reflective_agents.nodes.asking.transcript import LESSONS, material, quoted
from reflective_agents.prompts import experience
from reflective_agents.prompts import react as prompts
from reflective_agents.prompts import trials as own_prompts
from reflective_agents.state.run import S
from reflective_agents.state.settings.trials import TrialsContext
from reflective_agents.state.trial import Trial


def advice(trials: Sequence[Trial], earlier: Sequence[str], context: TrialsContext) -> str:
    """Write the advice for the next trial, as the settings say: reflections, the last attempt, both or nothing.

    Args:
        trials: The trials of this run.
        earlier: Lessons of earlier runs of similar tasks, the most relevant one last.
        context: `reflection` and `memory_size`.
    """
    parts = []
    reflections = [trial["reflection"] for trial in trials if trial["reflection"]]
    reflections = reflections[-context.memory_size :]
    earlier = earlier[max(len(earlier) + len(reflections) - context.memory_size, 0) :]
    if context.reflection in ("reflexion", "last_attempt_and_reflexion"):
        if earlier:
            parts.append(f"\n\n{recalled_text(earlier)}")
        if reflections:
            lines = [f"- {' '.join(lesson.split())}" for lesson in reflections]
            words = own_prompts.LESSONS if any(trial.get("unsure") for trial in trials) else prompts.LESSONS
            parts.append(words.format(lessons="\n".join(lines)))
    if trials and context.reflection in ("last_attempt", "last_attempt_and_reflexion"):
        words = own_prompts.LAST_ATTEMPT if trials[-1].get("unsure") else prompts.LAST_ATTEMPT
        parts.append(words.format(attempt=trials[-1]["attempt"]))
    return "".join(parts)


def recalled_text(lessons: Sequence[str]) -> str:
    """Quote lessons of earlier runs for a prompt."""
    shown = [quoted("lesson", lesson) for lesson in lessons]
    return experience.RECALLED.format(lessons="\n".join(shown))


def with_lessons(state: S) -> S:
    """Return the state as a node sees it: with the lessons of earlier runs in front of the conversation, as material in
    a message of its own that is no part of what is requested. It never enters the state's messages, and no critic sees
    it (`nodes.asking.transcript.request_text`)."""
    if "recalled" not in state or not state["recalled"]:
        return state
    shown = state.copy()
    shown["messages"] = [lessons_message(state["recalled"]), *state["messages"]]
    return shown


def lessons_message(lessons: Sequence[str]) -> HumanMessage:
    """Show lessons of earlier runs in a message of their own."""
    message = material(recalled_text(lessons))
    message.additional_kwargs[LESSONS] = True
    return message


def lessons_in(conversation: Sequence[BaseMessage]) -> str:
    """Return the lessons that stand in front of a conversation, as text that ends its line; empty if there are none."""
    return "".join(f"{message.text}\n" for message in conversation if message.additional_kwargs.get(LESSONS))
