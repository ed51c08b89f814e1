"""What runs have learned, as plain data: items, what happens to them, and what models are asked to fill in."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal, NotRequired

from pydantic import BaseModel, Field, StringConstraints
from typing_extensions import TypedDict

from reflective_agents.state.memories import Sentence
from reflective_agents.text.words import LETTERS, SYLLABLES

ItemKind = Literal["success", "failure"]
ItemStatus = Literal["active", "contested", "refuted"]
MOST_ADDITIONS = 3
"""Refinements of an item that are shown, the latest."""
LONGEST_TEXT = 1000
"""Characters of a text of an item."""


class Change(TypedDict):
    """A change of an item: when (seconds since 1970), what it was, and the texts before and after by their fields."""

    at: float
    what: Literal["refined", "edited"]
    before: dict[str, str]
    after: dict[str, str]


class Item(TypedDict):
    """What runs have learned for tasks of a kind (ReasoningBank, arXiv 2509.25140, section 3).

    `kind` tells whether it was drawn from what worked or from what failed. `seen` counts the runs that have drawn it,
    `solved` and `failed` those that were shown it and ended so. Times are seconds since 1970; `last_shown` is None
    before it was shown. Two items that contradict each other are `contested`, and name each other in `against`, until
    one is confirmed; the other is `refuted` then. `history` holds all changes; a refinement adds to the advice.
    """

    id: str
    title: str
    applies_when: str
    advice: str
    evidence: str
    kind: ItemKind
    created: float
    seen: int
    solved: int
    failed: int
    last_shown: float | None
    status: ItemStatus
    against: list[str]
    history: list[Change]


class Event(TypedDict):
    """What has happened to an item, written once and never changed: several processes cannot spoil each other's.

    `solved` is how a run ended that was shown it, None if nobody verified that. `texts` are those of a change, and `by`
    is the item that contradicts or outlives it.
    """

    what: Literal["shown", "drawn", "refined", "edited", "contradicted", "confirmed", "refuted"]
    at: float
    solved: NotRequired[bool | None]
    texts: NotRequired[dict[str, str]]
    by: NotRequired[str]


class ShownItem(TypedDict):
    """An item that a run was shown."""

    id: str
    title: str


class Experience(TypedDict):
    """What a run had of earlier runs, and leaves to later ones: what it was shown, the ids of those that its last call
    says were used, and the ids of the items that it has drawn, be they new or known."""

    shown: list[ShownItem]
    used: list[str]
    drawn: list[str]


def new_item(
    item_id: str, title: str, applies_when: str, advice: str, *, evidence: str = "", kind: ItemKind, created: float
) -> Item:
    """Make an item that was drawn once and never shown."""
    return Item(
        id=item_id,
        title=title,
        applies_when=applies_when,
        advice=advice,
        evidence=evidence,
        kind=kind,
        created=created,
        seen=1,
        solved=0,
        failed=0,
        last_shown=None,
        status="active",
        against=[],
        history=[],
    )


def folded(item: Item, events: Iterable[Event]) -> Item:
    """Return an item as it is after these events."""
    result: Item = {**item, "against": [*item["against"]], "history": [*item["history"]]}
    for event in sorted(events, key=lambda each: each["at"]):
        _fold(result, event)
    return result


def _fold(item: Item, event: Event) -> None:
    what = event["what"]
    if what == "shown":
        solved = event.get("solved")
        item["last_shown"] = event["at"]
        item["solved"] += solved is True
        item["failed"] += solved is False
    elif what == "drawn":
        item["seen"] += 1
    elif what in ("refined", "edited"):
        _change(item, event)
    elif what == "contradicted":
        item["against"] = sorted({*item["against"], event.get("by", "")})
        item["status"] = "contested"
    else:
        item["status"] = "refuted" if what == "refuted" else "active"


def _change(item: Item, event: Event) -> None:
    after = event.get("texts", {})
    before: dict[str, str] = {name: text for name, text in item.items() if name in after and isinstance(text, str)}
    what: Literal["refined", "edited"] = "edited" if event["what"] == "edited" else "refined"
    item["history"].append(Change(at=event["at"], what=what, before=before, after=after))
    if what == "edited":
        item.update(after)  # type: ignore[typeddict-item]  # texts of an item by their fields


def advice_of(item: Item) -> str:
    """Return the advice of an item with its latest refinements."""
    advice, *refined = pieces_of_advice(item)
    return "\n".join([advice, *refined[-MOST_ADDITIONS:]])


def pieces_of_advice(item: Item) -> list[str]:
    """Return the advice of an item and all that has refined it since it was last edited."""
    pieces = [item["advice"]]
    for change in item["history"]:
        advice = change["after"].get("advice")
        if change["what"] == "edited" and advice is not None:
            pieces = [item["advice"]]
        elif advice:
            pieces.append(advice)
    return pieces


def trust(item: Item) -> float:
    """Return how far an item is trusted, in 0..1: 1 at first, less with each run that was shown it and failed."""
    return (item["solved"] + 2) / (item["solved"] + item["failed"] + 2)


_UNSPACED = SYLLABLES + LETTERS
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
Line = Annotated[Sentence, StringConstraints(max_length=LONGEST_TEXT)]


def plain_words(text: str) -> str:
    """Return the words of a text with single blanks between them, in small letters; in a script that puts no blanks
    between words, its characters."""
    return " ".join(_WORD.findall(text.casefold()))


def plain_text(text: str) -> str:
    """Return a text in small letters, with single blanks, and without the mark at its end: equal for the same text. All
    other signs count, as those of a formula do."""
    return " ".join(text.casefold().split()).rstrip(".!")


class DrawnItem(BaseModel):
    """Something worth doing, or avoiding, in tasks of this kind."""

    title: Line = Field(description="A few words.")
    applies_when: Line = Field(description="The kind of task it is for, in a sentence, without the words of this one.")
    advice: Line = Field(description="What to do, in one to three sentences that hold for every task of the kind.")
    evidence: Line = Field(description="What in this run shows it, in one sentence.")
    kind: ItemKind = Field(description="Whether it comes from what worked or from what failed.")
    relation: Literal["new", "same", "refines", "contradicts"] = Field(
        default="new",
        description="How it stands to the item `known`: it says the same, adds to it, or opposes it.",
    )
    known: int = Field(default=0, description="The number of that known item; 0 if it is new.")


class Drawn(BaseModel):
    """What later runs should know, and which of the known items this run has used."""

    items: list[DrawnItem] = Field(max_length=3, description="At most three; none if nothing general was learned.")
    used: list[int] = Field(default_factory=list, description="Numbers of the shown items that the run has followed.")


class Applying(BaseModel):
    """Which items apply to the request."""

    applies: list[int] = Field(description="Numbers of the items whose condition the request meets; often none.")
