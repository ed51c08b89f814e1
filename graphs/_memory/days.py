"""When the turns of a thread were said, told to the model where days have passed since."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from langchain_core.messages import AnyMessage, HumanMessage


def with_days(conversation: Sequence[AnyMessage], days: Mapping[str, str], today: str) -> list[AnyMessage]:
    """Put the day in front of each first turn of a day, if any is not of today: "last week" means another week then.

    Args:
        conversation: The thread before the question.
        days: The days of its messages, by their ids; others get none.
        today: The day of the question.
    """
    if all(days.get(message.id or "", today) == today for message in conversation):
        return [*conversation]
    dated: list[AnyMessage] = []
    before = ""
    for message in conversation:
        day = days.get(message.id or "", before)
        if day != before and isinstance(message, HumanMessage):
            message = _with_day(message, day)
        dated.append(message)
        before = day
    return dated


def day_of(seconds: float) -> str:
    """Return the day of a time, in seconds since 1970, as it is shown to the model."""
    return f"{datetime.fromtimestamp(seconds, UTC):%A, %Y-%m-%d}"


def _with_day(message: HumanMessage, day: str) -> HumanMessage:
    """Put a day in front of what a message says, which may hold images, too."""
    head = f"(said on {day})"
    content = message.content
    changed = f"{head}\n{content}" if isinstance(content, str) else [{"type": "text", "text": head}, *content]
    return message.model_copy(update={"content": changed})
