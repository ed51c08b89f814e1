"""What a run has tried, as quoted text of bounded length, whatever its strategy: all that its state holds beside what
every state holds."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from langchain_core.messages import BaseMessage

from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.state.run import RunState

LONGEST = 12_000
"""Characters of all attempts together."""
LONGEST_PIECE, MOST_PIECES = 1_500, 5_000
"""Characters of one text, and texts that are read."""
_SHARED = frozenset(RunState.__annotations__) | {"stats", "log", "weights"}


def attempts_text(state: RunState) -> str:
    """Quote what a run has tried. Each kind of attempts has the same share of the length; of what is too long the
    middle is left out. Tasks, which may hold right answers, are passed over."""
    own = own_channels(state)
    share = LONGEST // max(len(own), 1)
    attempts: list[str] = []
    for name, value in own.items():
        pieces = [*islice(_pieces(value), MOST_PIECES)]
        if text := _shortened(pieces, share):
            attempts.append(quoted("attempt", text, of=name))
    return "\n".join(attempts)


def own_channels(state: RunState) -> dict[str, Any]:
    """Return what a state holds beside what that of every strategy holds."""
    return {name: value for name, value in state.items() if name not in _SHARED and value}


def _shortened(pieces: list[str], most: int) -> str:
    start: list[str] = []
    end: list[str] = []
    left = most
    while pieces and left > 0:
        if len(start) <= len(end):
            piece = pieces.pop(0)[:LONGEST_PIECE]
            start.append(piece)
        else:
            piece = pieces.pop()[:LONGEST_PIECE]
            end.append(piece)
        left -= len(piece)
    left_out = ["..."] if pieces else []
    return "\n".join([*start, *left_out, *reversed(end)])


def _pieces(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, BaseMessage):
        calls = [f"{call['name']}({call['args']})" for call in getattr(value, "tool_calls", [])]
        yield f"{value.type}: {' '.join([value.text, *calls])}"
    elif isinstance(value, Mapping):
        if "gold" not in value and not {"id", "question"} <= value.keys():
            for key, inner in value.items():
                yield from _pieces(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _pieces(inner, name)
    elif value not in (None, "", False):
        yield f"{name}: {value}" if name else str(value)
