"""What a task leaves behind besides its answer: its messages, trials, reflections, tree or day, for whoever looks at
what went wrong.

They lie in `transcripts.jsonl.gz` beside the results, one gzip member a task: `zcat` reads all of them, and a result
says where its own is. A file that ends in half a member is no harm, since no result points there.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NotRequired

from langchain_core.messages import BaseMessage, ToolCall
from typing_extensions import TypedDict

from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.trial import Trial
from reflective_agents.town.page import TownPicture, town_picture
from reflective_agents.viewer.picture import Picture, picture

TRANSCRIPTS = "transcripts.jsonl.gz"
TranscriptSpan = list[int]
"""Where a transcript lies: its first byte, and how many there are."""
_DRAWN = frozenset(
    {"messages", "answer", "outcome", "usage", "structured_response", "tree", "stats", "log", "lessons", "trials"}
)
_DAY = frozenset({"day", "conversations", "retrievals", "agents", "spread"})


class TranscriptMessage(TypedDict):
    """A message of the conversation."""

    type: str
    content: str
    tool_calls: list[ToolCall]


class Transcript(TypedDict):
    """What a strategy shows of a task. `shown` holds what only this strategy has: drafts, samples, subgoals."""

    id: str
    messages: list[TranscriptMessage]
    trials: list[Trial]
    reflections: list[str]
    shown: JsonObject
    tree: NotRequired[Picture]
    day: NotRequired[TownPicture]


def transcript_of(
    task: str, state: JsonMapping, artefacts: Iterable[str], strategy: str, context: Context
) -> Transcript:
    """Return the transcript of a run.

    Args:
        task: The id of the task.
        state: The whole state that the run has ended with.
        artefacts: The names of what the strategy returns.
        strategy: Its name.
        context: Its settings.
    """
    trials: list[Trial] = plain(state.get("trials") or [])
    day = town_picture(state) if state.get("day") and state.get("town") else None
    left_out = _DRAWN | _DAY if day else _DRAWN
    messages = state.get("messages") or []
    names = [name for name in artefacts if name not in left_out and state.get(name)]
    made = Transcript(
        id=task,
        messages=list(map(_message, messages)),
        trials=trials,
        reflections=list(_reflections(state, trials)),
        shown={name: plain(state[name]) for name in names},
    )
    if state.get("tree"):
        weight = getattr(context, "exploration_weight", None)
        made["tree"] = picture(state, strategy, weight, getattr(context, "aggregate", "mean"))
    if day:
        made["day"] = day
    return made


def plain(value: Any) -> Any:
    """Return state as data for JSON: a message becomes its type, its text and its tool calls."""
    if isinstance(value, BaseMessage):
        return _message(value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def packed(transcript: Transcript) -> bytes:
    """Return a transcript as it lies in the file."""
    line = json.dumps(transcript, ensure_ascii=True, default=str).encode() + b"\n"
    # Without a time, so that the same transcript has the same bytes.
    return gzip.compress(line, compresslevel=4, mtime=0)


def read_transcript(folder: Path, span: TranscriptSpan, task: str) -> Transcript | None:
    """Read the transcript of a task from the folder of its run; None if it does not lie there, as in folders in which
    tasks that ended at once were not kept apart."""
    start, length = span
    try:
        with (folder / TRANSCRIPTS).open("rb") as file:
            file.seek(start)
            transcript: Transcript = json.loads(gzip.decompress(file.read(length)))
    except (OSError, ValueError, EOFError):
        return None
    return transcript if transcript["id"] == task else None


def _message(message: BaseMessage) -> TranscriptMessage:
    return TranscriptMessage(
        type=message.type, content=message.text, tool_calls=list(getattr(message, "tool_calls", []))
    )


def _reflections(state: JsonMapping, trials: list[Trial]) -> Iterator[str]:
    yield from (trial["reflection"] for trial in trials if trial.get("reflection"))
    for lesson in state.get("lessons") or []:
        if lesson.get("text"):
            yield lesson["text"]
