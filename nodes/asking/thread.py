"""The thread as a strategy is shown it: the question comes last, and what other agents did is material."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langgraph.config import get_config

from reflective_agents.nodes.asking.transcript import material, steps_text
from reflective_agents.nodes.strategy import AGENT_NAME
from reflective_agents.prompts import thread as prompts
from reflective_agents.state.run import RunState, S
from reflective_agents.state.tool_calls import every_call, with_callers

STRATEGY, GRAPH = "strategy", "graph"
"""Where an answer names the strategy that has given it, in its `response_metadata`, and its graph if this has another
name."""

AFTER_QUESTION = "after_question"
"""Marks material that follows the question in the thread, though it is shown before it."""


def with_question_last(state: S) -> S:
    """Return the state as a node sees it: its last message is the last one of a person.

    What others have done since, and the tool calls of others wherever they stand, are quoted, so that no model takes
    them for its own. The state's messages stay as they are.
    """
    stored: RunState = state  # what `get` returns, mypy knows of this only
    messages = state["messages"]
    to_answer = unanswered(messages, graph_name(stored.get("strategy")), stored.get("answer"))
    is_ended = len(to_answer) < len(messages)  # and is gone on with: its answer will be replaced
    if is_ended or (to_answer and to_answer[-1].type == "human" and not any(map(_is_work, to_answer))):
        return state
    shown = state.copy()
    shown["messages"] = conversation(messages)
    return shown


def graph_name(strategy: str | None) -> str | None:
    """Return the name of the graph that runs, by which two of the same strategy are told apart; else the strategy's."""
    return get_config().get("metadata", {}).get(AGENT_NAME) or strategy


def unanswered(messages: Sequence[AnyMessage], graph: str | None, answer: str | None = None) -> Sequence[AnyMessage]:
    """Return a thread up to its question, if nothing follows that but the answer of a graph; else all of it.

    Args:
        messages: The thread.
        graph: The name of the graph.
        answer: What it has answered last; answers of earlier releases do not name who has given them.
    """
    last = position_of_question(messages)
    if last is None:
        return messages
    own = [_is_by(graph, message) or message.text == answer for message in messages[last + 1 :]]
    return messages[: last + 1] if all(own) else messages


def _is_by(graph: str | None, message: AnyMessage) -> bool:
    named = message.response_metadata
    return graph is not None and named.get(GRAPH, named.get(STRATEGY)) == graph


def conversation(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return a thread with its question last; see `with_question_last`. Without a question it stays as it is."""
    last = position_of_question(messages)
    if last is None:
        return [*messages]
    quoted = {_key(message) for message in messages[last + 1 :] if message.type in ("ai", "tool")}
    context = [*messages[:last], *messages[last + 1 :]]
    shown: list[AnyMessage] = []
    for is_work, group in groupby(context, lambda message: _is_work(message) or _key(message) in quoted):
        part = [*group]
        if not is_work:
            shown += part
            continue
        work = steps_text([*_in_pairs(part)])
        if work:
            done = material(prompts.DONE.format(work=work))
            done.id = part[-1].id  # by which a summary says what it covers
            done.additional_kwargs[AFTER_QUESTION] = not quoted.isdisjoint(map(_key, part))
            shown.append(done)
    return [*shown, messages[last]]


def position_of_question(messages: Sequence[BaseMessage]) -> int | None:
    """Return the index of the last message of a person; None if there is none."""
    for index in reversed(range(len(messages))):
        if messages[index].type == "human":
            return index
    return None


def _key(message: BaseMessage) -> str | int:
    """Return what tells a message from the others of its thread, also where it has no id."""
    return message.id or id(message)


def _is_work(message: BaseMessage) -> bool:
    return isinstance(message, ToolMessage) or (isinstance(message, AIMessage) and bool(every_call(message)))


def _in_pairs(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """Yield messages without the tool calls that nothing has answered."""
    answered: set[tuple[str | int, str | None]] = set()
    for caller, message in with_callers(messages):
        if caller and isinstance(message, ToolMessage):
            answered.add((_key(caller), message.tool_call_id))
    for message in messages:
        if isinstance(message, AIMessage) and every_call(message):
            readable = [call for call in message.tool_calls if (_key(message), call["id"]) in answered]
            others = [call for call in message.invalid_tool_calls if (_key(message), call["id"]) in answered]
            message = AIMessage(message.text, tool_calls=readable, invalid_tool_calls=others)
        if message.text or _is_work(message):
            yield message
