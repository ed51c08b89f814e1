"""A town's day as it is told by progress events: a row for each time at which someone begins something else."""

from rich.table import Table

from reflective_agents.cli.output import one_line, table
from reflective_agents.state.json_types import JsonMapping

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

    def add(self, event: JsonMapping) -> None:
        """Take in the next event."""
        if event["event"] == "say":
            self.talk.append(one_line(f"{event['time']} {event['agent']}: {event['text']}"))
            return
        doing = one_line(f"{event['place']}: {event['doing']}", SHOWN)
        if self.agents.get(event["agent"]) != doing:
            self.agents[event["agent"]] = doing
            self.rows.setdefault(event["time"], {})[event["agent"]] = doing

    def columns(self) -> list[str]:
        """List the columns of the table."""
        return ["time", *self.agents]

    def lines(self) -> list[list[str]]:
        """List the rows of the table; the cell is empty where an agent goes on with the same thing."""
        lines: list[list[str]] = []
        for time, actions in self.rows.items():
            lines.append([time, *(actions.get(agent, " ") for agent in self.agents)])
        return lines

    def as_table(self, height: int) -> Table:
        """Show the latest rows as a table of at most `height` lines, if each row fits on one line."""
        built = table(self.columns(), self.lines()[-max(height - 1, 1) :])
        built.expand = True
        for column in built.columns[1:]:
            column.no_wrap, column.overflow, column.ratio = True, "ellipsis", 1
        return built
