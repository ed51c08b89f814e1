"""A conversation that fits: its oldest turns are shown as a summary, while the thread itself stays whole."""

import re
from collections.abc import Iterable, Sequence

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from reflective_agents.models.costs import estimate_tokens
from reflective_agents.nodes.asking.thread import position_of_question
from reflective_agents.nodes.asking.transcript import after_others, in_other_words, material, quoted
from reflective_agents.nodes.evidence.reference_list import reference_line
from reflective_agents.nodes.evidence.sources import EARLIER
from reflective_agents.prompts import compaction as prompts
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.run import Compaction, RunState, S

_CITED = re.compile(r"\[(\d{1,6})\]")


def with_summary(state: S) -> S:
    """Return the state as a node sees it: what is compacted of its messages stands there as a summary. Instructions,
    which are messages of the system, stay as they are."""
    stored: RunState = state  # what `get` returns, mypy knows of this only
    compaction = stored.get("compaction")
    messages = state["messages"]
    first = first_kept(messages, compaction)
    if not compaction or not first:
        return state
    shown = state.copy()
    system = [message for message in messages[:first] if message.type == "system"]
    shown["messages"] = [*system, summary_message(compaction), *messages[first:]]
    return shown


def with_same_request(state: S, whole: Iterable[BaseMessage]) -> S:
    """Return the state as a node sees it: a request that was written out with the whole conversation has the compacted
    one instead, and a message that is shown in part as that is shown.

    Args:
        state: The state as it is shown.
        whole: The messages that are shown in other words, as they were.
    """
    stored: JsonObject = {**state}
    written = stored.get("request")
    if not isinstance(written, str):
        return state
    request = written
    whole = [*whole]
    shown_by_id = {message.id: message.text for message in state["messages"]} if whole else {}
    for message in whole:
        request = in_other_words(request, message.text, shown_by_id.get(message.id, message.text))
    if stored.get("compaction"):
        request = after_others(request, state["messages"][:-1])
    if request == written:
        return state
    shown = state.copy()
    shown["request"] = request  # type: ignore[typeddict-unknown-key]
    return shown


def first_kept(messages: Sequence[BaseMessage], compaction: Compaction | None) -> int:
    """Return the index of the first message that a summary does not cover; 0 if it does not fit the thread, because
    somebody has removed what it covers."""
    if not compaction:
        return 0
    ids = [message.id for message in messages[: position_of_question(messages)]]
    return ids.index(compaction["until"]) + 1 if compaction["until"] in ids else 0


def summary_message(compaction: Compaction) -> HumanMessage:
    """Show a summary, with those of its sources that it cites. It carries all of them, so that numbers stay taken."""
    lines = [compaction["summary"]]
    cited = compaction["sources"].keys() & _CITED.findall(compaction["summary"])
    if cited:
        lines.append(prompts.SOURCES)
    for number in sorted(cited, key=int):
        reference = reference_line(*compaction["sources"][number])
        lines.append(f"[{number}] {reference}")
    text = "\n".join(lines)
    message = material(prompts.SHOWN.format(messages=compaction["messages"], summary=quoted("summary", text)))
    message.additional_kwargs[EARLIER] = compaction["sources"]
    return message


def first_of_last_turns(conversation: Sequence[AnyMessage], most: int) -> int:
    """Return where the last turns of a conversation begin that have so many estimated tokens at most.

    A turn begins with a message of a person, so a call of a tool and its result stay together.
    """
    first = len(conversation)
    left = most
    for index in reversed(range(len(conversation))):  # `trim_messages` counts all, and more than once
        left -= estimate_tokens([conversation[index]], {})
        if left < 0:
            break
        if ends_turn(conversation, index):
            first = index
    return first


def ends_turn(conversation: Sequence[AnyMessage], count: int) -> bool:
    """Tell whether a turn ends with the first `count` messages."""
    return count == len(conversation) or conversation[count].type == "human"
