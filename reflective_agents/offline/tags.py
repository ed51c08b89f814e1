"""The parts of a prompt that stand between tags, as `nodes.asking.transcript` puts them there; read in linear time."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import NamedTuple

_ATTRIBUTE = re.compile(r"(?<!\w)(\w++)=\"([^\"]*)\"")


class Tagged(NamedTuple):
    """A part between tags: their name, their attributes, the text between them, and where both begin and end."""

    tag: str
    attributes: Mapping[str, str]
    text: str
    begin: int
    end: int


def read_tags(text: str, names: Collection[str]) -> Iterator[Tagged]:
    """Yield the parts of a text between the tags of these names, in order; what stands within one is a part of its
    text. A tag that nothing closes is none."""
    opening, unclosed, at = _opening(frozenset(names)), set[str](), 0
    while opened := opening.search(text, at):
        tag, at = opened[1], opened.end()
        # Sought once for each name: where it is not found, it is not behind later ones either.
        closed = None if tag in unclosed else _closing(tag).search(text, at)
        if closed is None:
            unclosed.add(tag)
            continue
        inner = text[at : closed.start()].removeprefix("\n").removesuffix("\n")
        at = closed.end()
        yield Tagged(tag, dict(_ATTRIBUTE.findall(opened[2])), inner, opened.start(), at)


def without_tags(text: str, names: Collection[str]) -> str:
    """Return what stands outside of the tags of these names."""
    outside, at = list[str](), 0
    for part in read_tags(text, names):
        outside.append(text[at : part.begin])
        at = part.end
    return " ".join([*outside, text[at:]])


@cache
def _opening(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"<({'|'.join(sorted(names))})\b([^<>]*)>")


@cache
def _closing(tag: str) -> re.Pattern[str]:
    return re.compile(rf"</{tag}\s*>")
