"""When the turns of a thread were said, told to the model where days have passed since."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from langchain_core.messages import AnyMessage, HumanMessage


def with_days(conversation: Sequence[AnyMessage], times: Mapping[str, float], now: float) -> list[AnyMessage]:
    """Put the day in front of each first turn of a day, if any is not of today: "last week" means another week then.

    Args:
        conversation: The thread before the question.
        times: When its messages came, by their ids, in seconds since 1970; others get no day.
        now: The time of the question.
    """
    days = {name: _day(times[name]) for message in conversation if (name := message.id or "") in times}
    if {*days.values()} <= {_day(now)}:
        return [*conversation]
    dated, before = list[AnyMessage](), ""
    for message in conversation:
        day = days.get(message.id or "", before)
        dated.append(_with_day(message, day) if day != before and isinstance(message, HumanMessage) else message)
        before = day
    return dated


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%A, %Y-%m-%d}"


def _with_day(message: HumanMessage, day: str) -> HumanMessage:
    """Put a day in front of what a message says, which may hold images, too."""
    head, content = f"(said on {day})", message.content
    changed = f"{head}\n{content}" if isinstance(content, str) else [{"type": "text", "text": head}, *content]
    return message.model_copy(update={"content": changed})
