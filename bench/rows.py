"""One figure of the table: what was measured, what is owed, and whether that holds."""

from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

COLUMNS = ("what", "here", "owed", "holds")


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
        """Return the row as text, in the order of `COLUMNS`."""
        owed = "" if self.owed is None else f"≤ {self._shown(self.owed)}"
        return self.what, self._shown(self.value), owed, {None: "", True: "yes", False: "NO"}[self.holds]

    def plain(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {**asdict(self), "holds": self.holds}

    def _shown(self, value: float) -> str:
        return f"{value:,.{self.digits}f} {self.unit}".rstrip()


def table(rows: list[Row]) -> Table:
    """Show all rows as a table for the terminal."""
    view = Table(*COLUMNS)
    for row in rows:
        view.add_row(*row.cells(), style="bold red" if row.holds is False else "")
    return view


def kept(rows: list[Row]) -> bool:
    """Tell whether everything owed that can be counted holds; figures of the clock are shown, not judged."""
    return all(row.holds is not False or row.timed for row in rows)
