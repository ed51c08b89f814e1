"""What a node is given beside the state, and how a function becomes a node."""

import asyncio
import textwrap
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langgraph.config import get_config
from langgraph.runtime import get_runtime
from langgraph.types import StreamWriter
from pydantic import JsonValue
from typing_extensions import ReadOnly, TypedDict

from reflective_agents import telemetry
from reflective_agents.models.context_window import always_fits, check_conversation
from reflective_agents.models.images import images_of
from reflective_agents.models.meter import Meter
from reflective_agents.models.providers import model_for
from reflective_agents.nodes.asking.compaction import with_same_request, with_summary
from reflective_agents.nodes.asking.summary import compact
from reflective_agents.nodes.asking.thread import with_question_last
from reflective_agents.nodes.asking.wording import use_prompts
from reflective_agents.nodes.bridge import SyncAdapter
from reflective_agents.nodes.evidence.long_questions import QUESTION, is_long, with_texts, words_of
from reflective_agents.nodes.evidence.long_texts import AND_QUESTION, HOLDS, LongTexts
from reflective_agents.nodes.evidence.references import in_thread
from reflective_agents.nodes.remembering.lessons import with_lessons
from reflective_agents.nodes.strategy import own_settings
from reflective_agents.nodes.unfinished import keep_for_resumption
from reflective_agents.nodes.users import authenticated_user
from reflective_agents.state.context import Context
from reflective_agents.state.errors import ConversationTooLong, LimitReached, Misuse, ModelFailed, TooLong
from reflective_agents.state.limits import Limit
from reflective_agents.state.outcome import Outcome, VerifiedBy, limited, stopped
from reflective_agents.state.policy import check_caller
from reflective_agents.state.run import NOTHING_SPENT, Compaction, LongText, RunState, S, Usage
from reflective_agents.state.versions import upgraded

telemetry.configure()  # before the first run begins, and not in an event loop

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
MOST_COMPACTIONS = 4
"""How often a conversation is compacted for one node, each time to less."""
LONG_THREAD = 1_000
"""Messages that are read beside the event loop: reading so many would hold it."""
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
        spent = {name: amount for name, amount in self.meter.usage.items() if self._before.get(name) != amount}
        return {"usage": spent, "events": self._events}

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
            pairs = zip(state["messages"], shown["messages"], strict=True)
            self.messages = {old.id: old for old, new in pairs if old is not new}
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


def stop(status: Literal["answered", "exhausted", "failed"], reason: str) -> Update:
    """Return the update that ends a run: there is an answer, nothing is left to try, or there can be no answer."""
    return {"outcome": Outcome(status=status, reason=reason)}


def stop_solved(by: VerifiedBy, reason: str) -> Update:
    """Return the update that ends a run whose answer is verified."""
    return {"outcome": Outcome(status="solved", reason=reason, verified_by=by)}


def stop_at(limit: Limit, detail: str = "") -> Update:
    """Return the update that ends a run at a limit; `detail` is added to the reason."""
    return {"outcome": limited(limit, detail)}


def stop_because(error: LimitReached | ModelFailed) -> Update:
    """Return the update that ends a run after a limit or a failing model has stopped it."""
    return {"outcome": stopped(error)}


async def _beside_loop(function: Callable[..., S], state: S, *args: Any) -> S:
    """Call a function that reads each message of a state, in another thread if they are many."""
    stored: RunState = state  # what `get` returns, mypy knows of this only
    is_long = len(stored.get("messages") or ()) > LONG_THREAD
    return await asyncio.to_thread(function, state, *args) if is_long else function(state, *args)


def _in_order(state: S) -> S:
    """Return a state with its question last, and one numbering of its sources."""
    return in_thread(with_question_last(state))


def _without_needless_summary(state: S, step: Step[Context]) -> S:
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


def _shown_within_context(state: S, step: Step[C], left: int, whole: S | None) -> S:
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


async def _shortened(shown: S, step: Step[C], most: int, left: int, thread: S) -> tuple[S, int]:
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


def node(
    schema: type[C], *, begins: bool = False
) -> Callable[[Callable[[S, Step[C]], Awaitable[Update]]], SyncAdapter[S, Update]]:
    """Make `async (state, step) -> update` a node of a graph whose settings are `schema`.

    A limit or a model that cannot be brought to answer ends the run with an outcome instead of an exception. What
    was spent is written to the state with the update. Settings given at the beginning of the run hold when it is
    resumed without them; a node that `begins` a run takes its own.
    """

    def decorate(function: Callable[[S, Step[C]], Awaitable[Update]]) -> SyncAdapter[S, Update]:
        async def run(state: S) -> Update:
            state = upgraded(state)
            stored: RunState = state  # what `get` returns, mypy knows of this only
            compaction = stored.get("compaction")
            runtime = get_runtime(schema)
            context = own_settings(runtime.context, schema) or schema.ambient()
            if begins:
                before: StateBefore = {"messages": stored.get("messages") or [], "texts": stored.get("texts") or {}}
                step = Step(context, before, runtime.stream_writer, compaction)
            else:
                context = context.resumed(stored.get("settings") or {}).raised(stored.get("raised") or {})
                step = Step(context, state, runtime.stream_writer, compaction)
            check_caller(step.context, step.context.defaults)
            run_id = uuid4().hex if begins else stored.get("run_id")
            with telemetry.step(function.__name__, run_id, stored.get("strategy"), get_config()):
                update: Update | None = None
                state = await _beside_loop(_without_needless_summary, state, step)
                thread = await _beside_loop(_in_order, state)
                shown = await step.show_texts(thread)
                whole = state if begins else None
                left = MOST_COMPACTIONS if step.context.compact == "auto" else 0
                try:
                    with use_prompts(step.context.prompts):
                        while update is None:
                            try:
                                within = await _beside_loop(_shown_within_context, shown, step, left, whole)
                                update = await function(within, step)
                            except ConversationTooLong as error:
                                shown, left = await _shortened(shown, step, error.most, left, thread)
                except (LimitReached, ModelFailed) as error:
                    update = stop_because(error)
                except BaseException:
                    spent = {} if begins else {"usage": step.cost()["usage"]}
                    await keep_for_resumption({**spent, **step.compacted()}, runtime.execution_info)
                    raise
            kept = {"texts": step.texts.new} if step.texts.new else {}
            begun = {"run_id": run_id} if begins else {}
            return {**step.cost(), **kept, **step.compacted(), **update, **begun}

        run.__name__, run.__doc__ = function.__name__, function.__doc__
        return SyncAdapter(run)

    return decorate
