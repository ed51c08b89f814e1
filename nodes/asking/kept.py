"""Summaries of this process, for clients that send their whole history anew with each question and have no thread.

A summary is found by what it covers, so nobody is shown what they have not sent; users of a server have their own.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from hashlib import blake2b

from langchain_core.messages import BaseMessage

from reflective_agents.models.capabilities import address_of, name_of
from reflective_agents.models.providers import model_for
from reflective_agents.state.context import Context
from reflective_agents.state.run import Compaction

MOST_KEPT = 256
"""Summaries that are kept: the one that was used least recently is dropped."""
LONGEST_KEPT = 50_000
"""Characters of a summary with its sources that is kept at most."""
_kept: OrderedDict[str, Compaction] = OrderedDict()
_lock = threading.Lock()


def beginnings(conversation: Sequence[BaseMessage], context: Context, user: str | None) -> list[str]:
    """Return a key for each beginning of a conversation, by its words, its user, and who would summarise it.

    Args:
        conversation: The messages before the question.
        context: The settings of the run.
        user: The user whom a server has authenticated.

    Returns:
        The keys, in order; none where the model has no address, by which it is told from others.
    """
    chat = model_for(context, context.summariser)
    who = [user, address_of(chat), name_of(chat), repr(context.prompts), context.language]
    return [*_keys(who, conversation)] if address_of(chat) else []


def _keys(who: Sequence[str | None], conversation: Sequence[BaseMessage]) -> Iterator[str]:
    running = blake2b(json.dumps(who).encode(), digest_size=16)
    for message in conversation:
        words = [message.type, message.content, getattr(message, "tool_calls", None)]
        running.update(json.dumps(words, default=str).encode())
        yield running.hexdigest()


def find_summary(keys: Sequence[str], conversation: Sequence[BaseMessage]) -> Compaction | None:
    """Return the summary that covers most of a conversation; None if there is none."""
    with _lock:
        for index in reversed(range(len(keys))):
            if kept := _kept.get(keys[index]):
                _kept.move_to_end(keys[index])
                return {**kept, "until": str(conversation[index].id)}
    return None


def keep_summary(keys: Sequence[str], compaction: Compaction, extended: Compaction | None = None) -> None:
    """Keep a summary by the beginning that it covers, in place of the part of it that it has extended."""
    if not keys or len(json.dumps(compaction)) > LONGEST_KEPT:
        return
    with _lock:
        if extended:
            _kept.pop(keys[extended["messages"] - 1], None)
        _kept[keys[compaction["messages"] - 1]] = compaction
        if len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)


def forget_summaries() -> None:
    """Forget all summaries of this process."""
    with _lock:
        _kept.clear()
