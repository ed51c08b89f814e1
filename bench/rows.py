"""One figure of the table: what was measured, the goal, and whether it is met."""

from collections.abc import Sequence
from dataclasses import dataclass

HEAD = "| what | here | goal | met |\n|---|--:|--:|---|"


@dataclass(frozen=True)
class Row:
    """A measured figure.

    Attributes:
        what: What was measured.
        value: The figure.
        unit: What it counts.
        owed: The most it may be; None if nothing is promised.
        timed: Whether it depends on the clock, so that a busy machine can spoil it.
        digits: Decimal places shown.
    """

    what: str
    value: float
    unit: str
    owed: float | None = None
    timed: bool = False
    digits: int = 0

    @property
    def holds(self) -> bool | None:
        """Whether the figure is within what is owed; None if nothing is."""
        return None if self.owed is None else self.value <= self.owed

    def cells(self) -> tuple[str, str, str, str]:
        """Return the row as text, in the order of `HEAD`."""
        owed = "" if self.owed is None else f"≤ {self._shown(self.owed)}"
        return self.what, self._shown(self.value), owed, {None: "", True: "yes", False: "NO"}[self.holds]

    def _shown(self, value: float) -> str:
        return f"{value:,.{self.digits}f} {self.unit}".rstrip()


def table(rows: Sequence[Row]) -> str:
    """Format all rows as a table in Markdown."""
    return "\n".join([HEAD, *(f"| {' | '.join(row.cells())} |" for row in rows)])


def kept(rows: Sequence[Row]) -> bool:
    """Tell whether everything owed that can be counted holds; figures of the clock are shown, not judged."""
    return all(row.holds is not False or row.timed for row in rows)
