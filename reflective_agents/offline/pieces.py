"""The parts that the offline model takes a conversation for: what stands in its messages, and between their tags."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from reflective_agents.offline.tags import read_tags, without_tags
from reflective_agents.text.structure import Json

# The tags of the prompts. What this model reads is what the prompts quote, so both change together.
_TAGS = (
    *(
        "conversation",
        "request",
        "draft",
        "critique",
        "thought",
        "action",
        "observation",
        "answer",
        "source",
        "verdict",
    ),
    *("aim", "subgoal", "report", "failure", "member", "author", "task", "remark", "asked", "subquestion", "lesson"),
    *("memory", "turn", "summary", "trajectory", "attempt", "candidate", "checked"),
)
_QUOTED = re.compile(r"(?<!\w)(?:\"((?:[^\"\n]|(?<=\w)\"(?=\w))++)\"|'((?:[^'\n]|(?<=\w)'(?=\w))++)')(?!\w)")


@dataclass(frozen=True)
class Piece:
    """A part of the conversation: its kind (a tag's name, `human`, `note` or `query`), its text, and what the tag's
    first attribute says."""

    kind: str
    text: str
    name: str = ""


def pieces_of(message: BaseMessage) -> Iterator[Piece]:
    """Yield the parts of a message; system messages, which are instructions for real models, have none."""
    if isinstance(message, AIMessage):
        if not message.tool_calls:
            yield Piece("answer", message.text)
        for call in message.tool_calls:
            yield Piece("action", call["name"])
            for text in _strings(call["args"]):
                yield Piece("query", text)
    elif isinstance(message, ToolMessage):
        yield Piece("observation", message.text)
    elif isinstance(message, HumanMessage):
        tagged = list(blocks_of(message.text))
        rest = without_tags(message.text, _TAGS).strip()
        if rest:
            yield Piece("note" if tagged else "human", rest)
        yield from tagged


def blocks_of(text: str) -> Iterator[Piece]:
    """Yield the parts of a text that stand between tags."""
    for tag, attributes, body, *_ in read_tags(text, _TAGS):
        if tag == "conversation":
            for turn in re.findall(r"^human: (.*)", body, re.M):
                yield Piece("human", turn)
        elif tag in {"trajectory", "attempt"}:
            yield from blocks_of(body)
        elif tag == "action":
            yield Piece("action", body)
            for match in _QUOTED.finditer(body):
                yield Piece("query", match[1] or match[2])
        else:
            kind = "request" if tag == "subquestion" else tag
            name = next(iter(attributes.values()), "")
            if tag != "candidate":
                body = body.replace("<\\/", "</").strip()
            yield Piece(kind, body, name)


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value.values()])
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)


def of_kind(pieces: Iterable[Piece], *kinds: str) -> list[Piece]:
    """Return the pieces of some kinds."""
    return [piece for piece in pieces if piece.kind in kinds]


def texts_of(pieces: Iterable[Piece], *kinds: str) -> list[str]:
    """Return the texts of the pieces of some kinds."""
    return [piece.text for piece in pieces if piece.kind in kinds]


def last_text(pieces: Iterable[Piece], kind: str) -> str:
    """Return the text of the last piece of a kind; empty if there is none."""
    texts = texts_of(pieces, kind)
    return texts[-1] if texts else ""
