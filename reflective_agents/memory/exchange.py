"""Items as JSON lines, to be reviewed and shipped like code, and items of one name merged into another."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from reflective_agents.state.errors import Misuse, problems_of
from reflective_agents.state.experience import LONGEST_TEXT, Item, ItemKind, ItemStatus, Line, new_item, plain_text
from reflective_agents.state.memories import FARTHEST, memory_id
from reflective_agents.text.clean import clean_data
from reflective_agents.text.json_signs import signs_outside_texts

if TYPE_CHECKING:  # loads numpy, and a file is read without
    from reflective_agents.memory.items import Items

Id = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Time = Annotated[float, Field(ge=-FARTHEST, le=FARTHEST, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=10**9)]
Text = Annotated[str, StringConstraints(max_length=LONGEST_TEXT)]
Texts = dict[Literal["title", "applies_when", "advice", "evidence"], Text]
MOST_LINES = 1_000
"""Changes and contradictions of one item that are read."""

LONGEST_LINE = 20_000_000
"""Characters of a line; an item of as many changes, each of the longest texts, has fewer."""
MOST_SIGNS = 100_000
"""Commas, brackets and quotation marks of such an item."""


class ChangeLine(BaseModel):
    """A change of an item in a file."""

    model_config = ConfigDict(extra="forbid")

    at: Time
    what: Literal["refined", "edited"]
    before: Texts
    after: Texts


class ItemLine(BaseModel):
    """An item in a file; only its three texts are needed."""

    model_config = ConfigDict(extra="forbid")

    title: Line
    applies_when: Line
    advice: Line
    evidence: Text = ""
    kind: ItemKind = "success"
    id: Id | None = None
    created: Time | None = None
    seen: Count = 1
    solved: Count = 0
    failed: Count = 0
    last_shown: Time | None = None
    status: ItemStatus = "active"
    against: list[Id] = Field(default=[], max_length=MOST_LINES)
    history: list[ChangeLine] = Field(default=[], max_length=MOST_LINES)

    @field_validator("*", mode="before")
    @classmethod
    def _clean(cls, value: object) -> object:
        return clean_data(value)

    def item(self) -> Item:
        """Return it as an item: without an id it has one that follows from its condition and its advice."""
        own = new_item(
            self.id or memory_id(f"item {plain_text(self.applies_when)} {plain_text(self.advice)}"),
            self.title,
            self.applies_when,
            self.advice,
            kind=self.kind,
            created=time.time() if self.created is None else self.created,
        )
        given: Item = {**own, **self.model_dump(exclude={"id", "created"})}  # type: ignore[typeddict-item]
        return given


class Merged(NamedTuple):
    """What merging has done: how many items are new, and how many were known in the same words."""

    added: int
    counted: int


async def export_items(items: "Items") -> AsyncIterator[str]:
    """Export items as JSON lines, without line ends, the oldest first."""
    async for item in items.everything():
        yield json.dumps(item, ensure_ascii=False)


async def import_items(items: "Items", lines: Iterable[str]) -> list[str]:
    """Add exported or hand-written items, and return the ids that are new; those that are known are left as they are.

    Raises:
        Misuse: if a line is no item; then nothing is imported.
    """
    return await items.add(await asyncio.to_thread(read_items, lines))


def read_items(lines: Iterable[str]) -> list[Item]:
    """Read items from JSON lines.

    Raises:
        Misuse: if a line is no item.
    """
    return [_read(line, number) for number, line in enumerate(lines, 1) if line.strip()]


def _read(line: str, number: int) -> Item:
    if len(line) > LONGEST_LINE or signs_outside_texts(line.encode(errors="replace"), MOST_SIGNS) > MOST_SIGNS:
        raise Misuse(
            f"line {number} is no item: it has more than {LONGEST_LINE:,} characters, or {MOST_SIGNS:,} signs of JSON"
        )
    try:
        return ItemLine.model_validate_json(line).item()
    except ValidationError as error:
        raise Misuse(f"line {number} is no item: {problems_of(error)[0]}") from error


async def merge_items(items: "Items", others: Sequence[Item]) -> Merged:
    """Merge other items: what says the same in the same words counts for the one that is known, all else is added.
    Done again it changes nothing."""
    known = {_key(item): item["id"] async for item in items.wordings()}
    new: list[Item] = []
    drawn: list[tuple[str, str, float]] = []
    for other in others:
        same = known.setdefault(_key(other), other["id"])
        if same == other["id"]:
            new.append(other)
        else:
            drawn.append((f"merged {other['id']}", same, other["created"]))
    added = await items.add(new)
    await items.count_drawn(drawn)
    return Merged(len(added), len(drawn))


def _key(item: Item) -> tuple[str, str]:
    return plain_text(item["applies_when"]), plain_text(item["advice"])
