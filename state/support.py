"""What an answer rests on: its sentences, each with what its cited passages have to say to it."""

from typing import Literal

from typing_extensions import TypedDict

Answered = Literal["yes", "partly", "no"]
"""Whether an answer answers what was asked."""
Level = Literal["full", "part", "none", "uncited", "misquoted", "unseen", "own", "unchecked", "no_fact"]
"""How far the passages that a sentence cites support it. `misquoted`: the checker calls it supported, by words that do
not stand in them. `unseen`: they were read for an earlier answer, and are not at hand. `own`: it rests on nothing but
what the assistant itself has said before. `unchecked`: the checker has left it out. `no_fact`: there is nothing to
support."""


class SupportedSentence(TypedDict):
    """A sentence of an answer: the passages that it `cites`, how far they support it, and the words that do."""

    text: str
    cites: list[str]
    support: Level
    words: str


class Support(TypedDict):
    """What the check of an answer against its sources has brought.

    Where it was `left_out`, for the reason that stands there, `answered` is None, and there are no sentences.
    """

    answered: Answered | None
    sentences: list[SupportedSentence]
    left_out: str
