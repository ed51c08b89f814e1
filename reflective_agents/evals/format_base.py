"""What the forms of data sets have in common."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

from reflective_agents.environments.base import Task
from reflective_agents.state.json_types import JsonObject

Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
T = TypeVar("T")
Row = Any
"""What a file holds for one task: an object with names, or a list."""


def _unless_blank(value: T) -> T | None:
    """Take an empty cell for a missing one."""
    return None if isinstance(value, str) and not value.strip() else value


Gold = Annotated[str | None, BeforeValidator(_unless_blank)]


class Format(BaseModel):
    """A row of a data set, checked."""

    model_config = ConfigDict(coerce_numbers_to_str=True, extra="allow", frozen=True)

    environment: ClassVar[str]
    """The name of the environment that its tasks belong to."""
    expects: ClassVar[str]
    """What a row must have, in words."""
    marks: ClassVar[tuple[frozenset[str], ...]]
    """Sets of names: a row that has all of one set is of this form."""

    @classmethod
    def fits(cls, row: Row) -> bool:
        """Return whether a row seems to be of this form."""
        return isinstance(row, dict) and any(mark <= row.keys() for mark in cls.marks)

    @abstractmethod
    def task(self, number: int) -> Task:
        """Return the task of a row; `number`, from 1, is its place in the file, for rows without a name.

        Raises:
            Misuse: if the environment cannot make a task of it.
        """


def as_row(row: Row) -> Row:
    """Give a row that is a list, as those of crosswords and of plans are, its names; leave any other as it is."""
    match row:
        case [list() as clues, list() as letters]:
            return {"clues": clues, "letters": "".join(map(str, letters))}
        case [str(), str(), int()]:
            return {"raw": row}
        case _:
            return row


def new_task(name: str, question: str, gold: str | None = None, data: JsonObject | None = None) -> Task:
    """Make a task; what it does not have is left out."""
    task = Task(id=name, question=question)
    if gold is not None:
        task["gold"] = gold
    if data:
        task["data"] = data
    return task
