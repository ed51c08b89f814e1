"""What streams consist of: events, pieces of an answer up to the first of the texts that end it, lines of progress."""

import json
from collections.abc import Iterator, Mapping, Sequence

from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.structure import Json

_COST = {"seq", "event", "model_calls", "total_tokens", "seconds", "cost", "stats"}


def event(data: JsonObject) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"


def cut(answer: str, stops: Sequence[str]) -> str:
    """Return an answer up to the first of the texts that end it."""
    starts = [start for stop in stops if (start := answer.find(stop)) >= 0]
    return answer[: min(starts, default=len(answer))]


class StreamedAnswer:
    """An answer that is sent while it is written, up to the first of the texts that end it.

    Args:
        stops: Those texts. Characters that might begin one are held back.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops, self._held = stops, max(map(len, stops), default=1) - 1
        self._text = self._sent = ""

    def add(self, piece: str) -> str:
        """Take a piece of the answer, and return the text that can be sent now."""
        self._text += piece
        whole = cut(self._text, self._stops)
        # What may be the beginning of a stop waits for the next piece; behind a stop that was found nothing changes.
        certain = whole if len(whole) < len(self._text) else whole[: len(whole) - self._held]
        return self._unsent(certain)

    def rest(self, answer: str) -> str | None:
        """Return the part of the whole answer that is still to be sent; None if what was sent does not begin it."""
        return self._unsent(answer) if answer.startswith(self._sent) else None

    def _unsent(self, text: str) -> str:
        unsent = text[len(self._sent) :]
        self._sent += unsent
        return unsent


def pieces(answer: str, size: int = 200) -> Iterator[str]:
    """Return an answer in pieces of so many characters."""
    return (answer[start : start + size] for start in range(0, len(answer), size))


def progress_line(progress: Mapping[str, Json]) -> str:
    """Format a progress event of a run as a line."""
    fields = (f"{name}={_plain(value)}" for name, value in progress.items() if name not in _COST and value is not None)
    return f"{progress['event']}: {', '.join(fields)}\n"


def _plain(value: Json) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
