"""What the state of every strategy begins with: the conversation, the answer, the outcome and the cost.

Savers such as SQLite's write every ordinary channel anew at each step. What is large or changes at each step therefore
lies in delta channels, of which only the changes are stored.
"""

from collections.abc import Sequence
from typing import Annotated, NotRequired, TypeVar, cast, get_args, get_type_hints
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AnyMessage, convert_to_messages
from langgraph.channels import DeltaChannel
from langgraph.graph.message import Messages, add_messages
from typing_extensions import TypedDict, is_typeddict

from reflective_agents.state.experience import Experience
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.support import Support
from reflective_agents.text.clean import clean_data

T = TypeVar("T")
RUN_ONLY = "written by the run alone"
"""Marks a channel that no client may write; those that hold a `Usage` are the run's as well."""


class Usage(TypedDict):
    """What a run has cost so far; kept in the state, so that a resumed run goes on counting.

    `thinking_tokens` are those of `output_tokens` that models thought before they answered. `cost` is in dollars,
    without the `unpriced_calls`, of which nobody knows the price.
    """

    model_calls: int
    failed_calls: int
    parse_failures: int
    tool_calls: int
    tool_errors: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    thinking_tokens: int
    cost: float
    unpriced_calls: int
    seconds: float


NOTHING_SPENT: Usage = {
    "model_calls": 0,
    "failed_calls": 0,
    "parse_failures": 0,
    "tool_calls": 0,
    "tool_errors": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "total_tokens": 0,
    "thinking_tokens": 0,
    "cost": 0.0,
    "unpriced_calls": 0,
    "seconds": 0.0,
}


def append_messages(messages: list[AnyMessage], writes: Sequence[Messages]) -> list[AnyMessage]:
    """Apply `add_messages` to a delta channel: a message without an id gets one that is the same at every replay.

    What users write comes in here, and is made clean.
    """
    for write in writes:
        new = convert_to_messages(write if isinstance(write, list) else [write])
        for message in new:
            message.content = clean_data(message.content)
        for index, message in enumerate(new, len(messages)):
            message.id = message.id or str(uuid5(NAMESPACE_OID, f"{index} {message.type} {message.content}"))
        messages = cast(list[AnyMessage], add_messages(cast(Messages, messages), cast(Messages, new)))
    return messages


def latest(_: T, writes: Sequence[T]) -> T:
    """Reduce a delta channel that holds one value: the last write wins."""
    return writes[-1]


def counted(usage: Usage, writes: Sequence[Usage]) -> Usage:
    """Reduce the cost: a write holds the counters that have changed."""
    merged = usage.copy()
    for write in writes:
        merged.update(write)
    return merged


class LongText(TypedDict):
    """A text that is too long to be shown whole."""

    title: str
    text: str


MOST_KEPT = 20_000_000
"""Characters of the texts that a thread keeps; the oldest are dropped first."""


def keep_texts(texts: dict[str, LongText], writes: Sequence[dict[str, LongText]]) -> dict[str, LongText]:
    """Reduce the texts of a thread, by their addresses."""
    kept = dict(texts)
    for write in writes:
        kept |= write
    while sum(len(kept_text["text"]) for kept_text in kept.values()) > MOST_KEPT:
        del kept[next(iter(kept))]
    return kept


class Input(TypedDict):
    """What a strategy is given: the conversation. Its last message of a person is the question."""

    messages: Annotated[list[AnyMessage], DeltaChannel(append_messages, snapshot_frequency=1000)]


class Output(Input):
    """What every strategy returns. `answer` is None only if the outcome is `failed`.

    `structured_response` is the answer as plain data in the form of the setting `answer_schema`, if it could be had.
    Without that setting it is there if the run failed, and holds the outcome: agents of LangChain and deepagents that
    have called a strategy read it in place of an answer. `support` is there if the answer was
    checked against its sources: which sentence rests on which passage. `experience` is there with the setting of that
    name: which items of earlier runs the run was shown and used, and which it has drawn.
    """

    answer: str | None
    outcome: Outcome | None
    structured_response: NotRequired[JsonObject | None]
    support: NotRequired[Support | None]
    experience: NotRequired[Annotated[Experience, RUN_ONLY]]
    usage: Annotated[Usage, DeltaChannel(counted, snapshot_frequency=1000)]


class Compaction(TypedDict):
    """What of a conversation is shown as a summary: the messages up to and with that whose id is `until`, so many.

    `sources` are those of the answers among them: address and title by number.
    """

    until: str
    messages: int
    summary: str
    sources: dict[str, list[str]]


class RunState(Output):
    """The channels shared by all strategies.

    `version` is that of the state (`state.versions`), `strategy` names the graph that a thread belongs to, `run_id` the
    turn that is under way, `settings` are those that it was given, for when it is resumed, and `events` is the number
    of progress events it has emitted. `recalled` are the lessons of earlier runs that all its nodes are shown, and
    `raised` says by how much a person has raised which limits on the way. `compaction` is what the nodes are shown in
    place of the oldest messages, where the whole conversation does not fit. `texts` are the results of tools that are
    too long to be shown whole, by their addresses.
    """

    version: Annotated[int, RUN_ONLY, DeltaChannel(latest, snapshot_frequency=1000)]
    strategy: NotRequired[Annotated[str, RUN_ONLY]]
    settings: Annotated[JsonObject, DeltaChannel(latest, snapshot_frequency=1000)]
    run_id: Annotated[str, RUN_ONLY, DeltaChannel(latest, snapshot_frequency=1000)]
    events: NotRequired[Annotated[int, RUN_ONLY]]
    recalled: NotRequired[list[str]]
    compaction: NotRequired[Annotated[Compaction, RUN_ONLY, DeltaChannel(latest, snapshot_frequency=1000)]]
    raised: NotRequired[Annotated[dict[str, float], RUN_ONLY]]
    texts: NotRequired[Annotated[dict[str, LongText], RUN_ONLY, DeltaChannel(keep_texts, snapshot_frequency=1000)]]


def run_only(state: type) -> set[str]:
    """Return the channels of a state that the run alone writes: what limits rest on, and what tells runs apart."""
    hints = get_type_hints(state, include_extras=True)
    return {name for name, hint in hints.items() if _is_run_only(hint)}


def _is_run_only(hint: object) -> bool:
    if hint is Usage or RUN_ONLY in getattr(hint, "__metadata__", ()):
        return True
    parts = get_type_hints(hint).values() if is_typeddict(hint) else get_args(hint)
    return any(map(_is_run_only, parts))


S = TypeVar("S", bound=RunState)
"""The state of a strategy."""
