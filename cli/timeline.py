"""A town's day as it is told by progress events: a row for each time at which someone begins something else."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from cli.output import one_line, table

EVENTS = ("act", "say")
SHOWN = 60
"""Characters of a cell."""


class Timeline:
    """The events `act` and `say` of a run, in order.

    Attributes:
        agents: What each is doing, in the order of the town.
        rows: What each began to do, by time.
        talk: What was said, as lines.
    """

    def __init__(self) -> None:
        self.agents: dict[str, str] = {}
        self.rows: dict[str, dict[str, str]] = {}
        self.talk: list[str] = []

    def add(self, event: Mapping[str, Any]) -> None:
        """Take in the next event."""
        if event["event"] == "say":
            self.talk.append(one_line(f"{event['time']} {event['agent']}: {event['text']}"))
            return
        doing = one_line(f"{event['place']}: {event['doing']}", SHOWN)
        if self.agents.get(event["agent"]) != doing:
            self.agents[event["agent"]] = doing
            self.rows.setdefault(event["time"], {})[event["agent"]] = doing

    def columns(self) -> list[str]:
        """The columns of the table."""
        return ["time", *self.agents]

    def lines(self) -> list[list[str]]:
        """The rows of the table; where someone goes on with the same thing, the cell is empty."""
        return [[time, *(told.get(agent, " ") for agent in self.agents)] for time, told in self.rows.items()]

    def shown(self, room: int) -> Table:
        """The latest rows as a table of at most so many lines, if each fits on one."""
        made = table(self.columns(), self.lines()[-max(room - 1, 1) :])
        made.expand = True
        for column in made.columns[1:]:
            column.no_wrap, column.overflow, column.ratio = True, "ellipsis", 1
        return made
