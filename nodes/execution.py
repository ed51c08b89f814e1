"""One execution of a node: its settings, the meter of the run, and the way to tell what happens."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.types import StreamWriter
from pydantic import JsonValue
from typing_extensions import ReadOnly, TypedDict

from reflective_agents import telemetry
from reflective_agents.models.meter import Meter
from reflective_agents.nodes.evidence.long_questions import QUESTION, is_long, with_texts
from reflective_agents.nodes.evidence.long_texts import AND_QUESTION, HOLDS, LongTexts
from reflective_agents.state.context import Context
from reflective_agents.state.errors import Misuse, TooLong
from reflective_agents.state.run import NOTHING_SPENT, Compaction, LongText, S, Usage

C = TypeVar("C", bound=Context, covariant=True)
Update = dict[str, Any]
SHORT = 200
"""Characters of a text that an event tells."""
COST: tuple[Literal["model_calls", "total_tokens", "seconds", "cost"], ...] = (
    "model_calls",
    "total_tokens",
    "seconds",
    "cost",
)
"""What an event tells of the usage; the money only where there is a price."""
LISTED = 5
"""Items of a list that an event tells."""


class StateBefore(TypedDict, total=False):
    """What a node goes on from: the conversation, and what the run has cost so far."""

    messages: ReadOnly[Sequence[AnyMessage]]
    usage: ReadOnly[Usage]
    events: ReadOnly[int]
    texts: ReadOnly[Mapping[str, LongText]]


class Step(Generic[C]):
    """One execution of a node: its settings, the meter of the run, and the way to tell what happens.

    Attributes:
        context: The settings of the run; the defaults if the caller gave none.
        meter: What the run may still spend.
        texts: The texts that are too long to be shown whole.
        messages: The messages that are shown in other words, as they were, by their ids.
        compaction: What is compacted of the conversation.
    """

    def __init__(
        self, context: C, state: StateBefore, write: StreamWriter, compaction: Compaction | None = None
    ) -> None:
        self.context = context
        self._before: Usage | dict[str, float] = state.get("usage") or {}
        self.meter = Meter(context, state.get("usage") or NOTHING_SPENT, self.emit, state.get("messages") or ())
        self.texts = LongTexts(context, state.get("texts") or {})
        self._write = write
        self.messages: dict[str | None, AnyMessage] = {}
        self._events = state.get("events") or 0
        self.compaction = self._compaction = compaction

    def emit(self, event: str, **data: Any) -> None:
        """Tell the `custom` stream what has just happened: a small numbered event of plain data, with the cost up to
        now. Long texts are cut."""
        self._events += 1
        usage = self.meter.usage
        cost = {name: usage[name] for name in COST if usage[name] or name != "cost"}
        telemetry.decision(event, **data, **cost)
        data = {name: _short(value) for name, value in data.items()}
        self._write({"seq": self._events, "event": event, **data, **cost})

    def cost(self) -> Update:
        """Return the update of the cost: the counters that have changed."""
        changed = {name: amount for name, amount in self.meter.usage.items() if self._before.get(name) != amount}
        return {"usage": changed, "events": self._events}

    def compacted(self) -> Update:
        """Return the update of what is compacted; nothing where that is as it was."""
        return {} if self.compaction is self._compaction else {"compaction": self.compaction}

    def keep(self, compaction: Compaction) -> None:
        """Keep what is compacted by now, so that it is found there also if the node does not end."""
        self.compaction = compaction

    async def show_texts(self, state: S, *, begins: bool = False) -> S:
        """Return the state as a node sees it, with the long messages of the user in part.

        Raises:
            Misuse: as `nodes.evidence.long_questions.with_texts`.
        """
        shown = await with_texts(state, self.texts, self.context, begins=begins)
        self.meter.long_messages = [message for message in shown["messages"] if is_long(message)]
        if shown is not state:
            self.messages = {}
            for old, new in zip(state["messages"], shown["messages"], strict=True):
                if old is not new:
                    self.messages[old.id] = old
        return shown

    async def show_less(self, state: S) -> S | None:
        """Return a state with less of its long messages, since more is known now of the model's context; None if that
        changes nothing.

        Raises:
            TooLong: if there is no question apart from the text of the last message.
        """
        before = _length(self.meter.long_messages)
        try:
            shown = await self.show_texts(state, begins=True) if before else state
        except Misuse as error:
            raise TooLong(str(error)) from error
        return shown if _length(self.meter.long_messages) < before else None

    def whole(self, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
        """Return messages with the whole texts of the user, for a strategy that works within this one: it shows them in
        part itself. Texts of messages that a summary covers, or that stand there in other words, come alone."""
        texts = self.texts.as_messages(without={message.id for message in messages})
        whole = [self._whole(message) for message in messages]
        if not texts:
            return whole
        system = [message for message in whole if message.type == "system"]
        others = [message for message in whole if message.type != "system"]
        return [*system, *texts, *others]

    def _whole(self, message: AnyMessage) -> AnyMessage:
        if QUESTION not in message.additional_kwargs:
            return message
        whole = self.messages[message.id]
        return whole.model_copy(update={"additional_kwargs": {**whole.additional_kwargs, HOLDS: AND_QUESTION}})


def _length(messages: Sequence[BaseMessage]) -> int:
    return sum(len(message.text) for message in messages)


def _short(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_short(item) for item in value[:LISTED]]
    if not isinstance(value, str):
        return value
    text = " ".join(value.split())
    return text if len(text) <= SHORT else textwrap.shorten(text, SHORT, placeholder=" ...")
