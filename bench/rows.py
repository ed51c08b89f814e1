"""One figure of the table: what was measured, the goal, and whether it is met."""

from collections.abc import Sequence
from dataclasses import dataclass

HEAD = "| what | here | goal | met |\n|---|--:|--:|---|"
MOST_DIGITS = 9
"""Decimal places after which a figure is taken for its goal."""


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
        digits = self._digits()
        owed = "" if self.owed is None else f"≤ {self._shown(self.owed, digits)}"
        return self.what, self._shown(self.value, digits), owed, {None: "", True: "yes", False: "NO"}[self.holds]

    def _digits(self) -> int:
        """Return how many decimal places are shown: more of a figure that would look like the goal it misses."""
        if self.owed is None or self.holds:
            return self.digits
        apart = (d for d in range(self.digits, MOST_DIGITS) if self._shown(self.value, d) != self._shown(self.owed, d))
        return next(apart, self.digits)

    def _shown(self, value: float, digits: int) -> str:
        return f"{value:,.{digits}f} {self.unit}".rstrip()


def table(rows: Sequence[Row]) -> str:
    """Format all rows as a table in Markdown."""
    return "\n".join([HEAD, *(f"| {' | '.join(row.cells())} |" for row in rows)])


def kept(rows: Sequence[Row]) -> bool:
    """Tell whether everything owed that can be counted holds; figures of the clock are shown, not judged."""
    return all(row.holds is not False or row.timed for row in rows)
