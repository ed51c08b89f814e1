"""What the state of every strategy begins with: the conversation, the answer, the outcome and the cost."""

from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

Status = Literal["solved", "limit_reached", "exhausted", "failed"]


class Outcome(TypedDict):
    """How a run ended. `failed` means that there is no answer; otherwise the best answer found is returned."""

    status: Status
    reason: str


class Usage(TypedDict):
    """What a run has cost so far; kept in the state, so that a resumed run goes on counting."""

    model_calls: int
    failed_calls: int
    parse_failures: int
    tool_calls: int
    tool_errors: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
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
    "seconds": 0.0,
}


class Input(TypedDict):
    """What a strategy is given: the conversation, whose last message is the question."""

    messages: Annotated[list[AnyMessage], add_messages]


class Output(Input):
    """What every strategy returns. `answer` is None only if the outcome is `failed`."""

    answer: str | None
    outcome: Outcome | None
    usage: Usage


class RunState(Output):
    """The channels shared by all strategies.

    `strategy` names the graph that a thread belongs to, `run_id` the turn that is under way, `settings` are those that
    it was given, for when it is resumed, and `events` is the number of progress events it has emitted.
    """

    strategy: NotRequired[str]
    settings: NotRequired[dict[str, Any]]
    run_id: NotRequired[str]
    events: NotRequired[int]
