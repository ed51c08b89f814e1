"""What a node is shown of the conversation: in order, and within the context of its model."""

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from reflective_agents.models.context_window import always_fits, check_conversation
from reflective_agents.models.images import images_of
from reflective_agents.models.providers import model_for
from reflective_agents.nodes.asking.compaction import with_same_request, with_summary
from reflective_agents.nodes.asking.summary import compact
from reflective_agents.nodes.asking.thread import with_question_last
from reflective_agents.nodes.evidence.long_questions import QUESTION, words_of
from reflective_agents.nodes.evidence.references import in_thread
from reflective_agents.nodes.execution import C, Step
from reflective_agents.nodes.remembering.lessons import with_lessons
from reflective_agents.nodes.users import authenticated_user
from reflective_agents.state.context import Context
from reflective_agents.state.run import RunState, S

LONG_THREAD = 1_000
"""Messages that are read beside the event loop: reading so many would hold it."""


async def beside_loop(function: Callable[..., S], state: S, *args: Any) -> S:
    """Call a function that reads each message of a state, in another thread if they are many."""
    stored: RunState = state  # what `get` returns, mypy knows of this only
    is_long = len(stored.get("messages") or ()) > LONG_THREAD
    return await asyncio.to_thread(function, state, *args) if is_long else function(state, *args)


def in_order(state: S) -> S:
    """Return a state with its question last, and one numbering of its sources."""
    return in_thread(with_question_last(state))


def without_needless_summary(state: S, step: Step[Context]) -> S:
    """Return the state without the summary that an earlier run has made, where this one shows the conversation whole:
    it is to compact nothing, or its model holds more."""
    stored: RunState = state  # what `get` returns, mypy knows of this only
    if not stored.get("compaction") or not (step.context.compact == "off" or _always_fits(state, step)):
        return state
    whole = state.copy()
    del whole["compaction"]
    return whole


def _always_fits(state: RunState, step: Step[Context]) -> bool:
    return always_fits(_model_of(step.context), state["messages"], step.meter)


def shown_within_context(state: S, step: Step[C], left: int, whole: S | None) -> S:
    """Return what a node is shown, and say what of it could be compacted, if that may be done so many times.

    Args:
        state: The state, with long messages in part.
        step: The node.
        left: How many times its conversation may still be compacted.
        whole: The state as it is stored, for a node that begins a run.

    Raises:
        ConversationTooLong: if the conversation does not fit by itself.
    """
    shown = with_lessons(with_same_request(with_summary(state), step.messages.values()))
    step.meter.compactable = shown["messages"][:-1] if left else ()
    # Not those that a summary covers, whose images would take as much of a prompt as before.
    step.meter.questions = [_asking(message) for message in shown["messages"] if message.type == "human"]
    if whole is not None:
        return _compacted_as(whole, state)
    _check_conversation(step)
    return shown


def _asking(message: BaseMessage) -> BaseMessage:
    """Return the words and images of a question, without what is shown of the text that came with it."""
    is_whole = QUESTION not in message.additional_kwargs
    return message if is_whole else HumanMessage([words_of(message), *images_of(message)])


def _compacted_as(whole: S, state: S) -> S:
    """Return a whole state with what is compacted in another form of it."""
    stored: RunState = state
    compaction = stored.get("compaction")
    if compaction is None:
        return whole
    shorter = whole.copy()
    shorter["compaction"] = compaction
    return shorter


async def shortened(shown: S, step: Step[C], most: int, left: int, thread: S) -> tuple[S, int]:
    """Return the state with less of its conversation, and how many times that may still be compacted.

    Args:
        shown: The state as it was shown, before its summary.
        step: The node.
        most: Estimated tokens that the conversation may have.
        left: How many times it may be compacted.
        thread: The state with whole messages.
    """
    if less := await step.show_less(thread):
        return _compacted_as(less, shown), left
    # Meanwhile nothing can be compacted: the call that summarises must not ask for a shorter conversation itself.
    long_messages, step.meter.compactable, step.meter.long_messages = step.meter.long_messages, (), ()
    words: list[BaseMessage] = [HumanMessage(step.meter.question)]
    step.meter.questions = words  # of what is summarised there are no images
    user = authenticated_user()
    compaction = await compact(shown, step.context, step.meter, most, user, step.keep) if left else None
    if compaction is None:
        return shown, 0
    step.meter.long_messages = long_messages
    shorter = shown.copy()
    shorter["compaction"] = compaction
    return shorter, left - 1


def _check_conversation(step: Step[Context]) -> None:
    if step.meter.compactable:
        check_conversation(_model_of(step.context), step.meter)


def _model_of(context: Context) -> BaseChatModel:
    return model_for(context, context.model)
