"""Look-ups that the chat model formulates from a message, in other words or one for each thing that it asks for."""

from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, AnyMessage

from reflective_agents.memory.reflection import normalised
from reflective_agents.nodes.asking.chat import ATTEMPTS, ask
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import recall as prompts
from reflective_agents.prompts.search import TODAY
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.memories import LookUps
from reflective_agents.state.settings.memory import MemoryContext

if TYPE_CHECKING:
    from reflective_agents.memory.stream import MemoryStream, Scored

QUERY = 2000
"""Characters of a message, or of a look-up, that memories are looked up for."""
BEFORE, LONGEST = 2, 1000
"""Messages before the question, and characters of each, that say what it is about."""


async def look_ups(step: Step[MemoryContext], stream: "MemoryStream", messages: Sequence[AnyMessage]) -> list[str]:
    """Return what to look up: the last message, then what the model adds to it, if the settings let it.

    The model is only asked if anything is remembered, and if that leaves a call for the answer however often its reply
    has to be sent back; where it fails, the message alone is looked up.

    Args:
        step: The node that retrieves.
        stream: The memory of the user.
        messages: The thread.
    """
    message = messages[-1].text[:QUERY]
    most = step.context.memory_queries
    if not most or step.meter.calls_left <= ATTEMPTS or not await stream.count():
        return [message]
    today_is = TODAY.format(today=today())
    prompt = prompts.LOOK_UP.format_messages(today=today_is, most=most, said=_quoted_turns(messages))
    try:
        queries = (await ask(step, step.context.model, prompt, LookUps)).queries[:most]
    except (LimitReached, ModelFailed) as problem:
        step.emit("not_looked_up", reason=str(problem))
        return [message]
    step.emit("looked_up", queries=queries)
    others: dict[str, str] = {}
    for query in queries:
        shortened = query[:QUERY]
        others[normalised(shortened)] = shortened
    others.pop(normalised(message), None)
    return [message, *others.values()]


def _quoted_turns(messages: Sequence[AnyMessage]) -> str:
    *before, last = messages[-BEFORE - 1 :]
    turns = []
    for turn in before:
        author = prompts.ASSISTANT if isinstance(turn, AIMessage) else prompts.USER
        turns.append(quoted("before", turn.text[-LONGEST:], by=author))
    turns.append(quoted("said", last.text[:QUERY], by=prompts.USER))
    return "\n".join(turns)


def best_ranks(rankings: "Sequence[Sequence[Scored]]") -> "list[Scored]":
    """Merge rankings: each memory at its best rank, with its score there; among equals the first ranking goes first."""
    by_id: dict[str, Scored] = {}
    for scored in chain.from_iterable(zip_longest(*rankings)):
        if scored is not None:
            by_id.setdefault(scored.memory["id"], scored)
    return list(by_id.values())
