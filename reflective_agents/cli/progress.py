"""What a run has told so far, folded from its progress events, and how that looks, live or line by line."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TypeAlias

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text
from rich.tree import Tree

from reflective_agents.cli.output import one_line, shown, stderr, table
from reflective_agents.cli.timeline import EVENTS, Timeline
from reflective_agents.nodes.step import COST
from reflective_agents.state.context import Context
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.text.structure import Json

Event: TypeAlias = JsonMapping
_PLUMBING = {"seq", "event", *COST}
_NOTES_SHOWN = 3


class Progress:
    """The events of a run, put in order.

    Attributes:
        nodes: Events of nodes of a search tree, by id.
        children: How many nodes each has below it, by its id.
        figures: Visits and total of the nodes that a search has come back to, by id.
        pruned: Nodes that a search has given up.
        rounds: What is known of each round, by number.
        timeline: What the agents of a town do and say.
        notes: Everything else that happened, as lines.
        cost: Calls, tokens and seconds up to the last event.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.nodes: dict[str, Event] = {}
        self.children: Counter[str] = Counter()
        self.figures: dict[str, Sequence[float]] = {}
        self.pruned: set[str] = set()
        self.rounds: dict[int, dict[str, Json]] = {}
        self.timeline = Timeline()
        self.notes: list[str] = []
        self.cost: dict[str, float] = dict.fromkeys(COST, 0)
        self._since = time.monotonic()
        self._expansions = 0
        self._drawn: tuple[int, Tree] | None = None
        """The tree as it was drawn last, and its height; None since the last event."""

    def add(self, event: Event) -> None:
        """Take in the next event."""
        number = event.get("round", event.get("number", event.get("trial")))
        self._drawn = None
        if event["event"] in ("node", "judged"):
            # A node is told of again when it was judged.
            self.children[event["parent_id"]] += event["id"] not in self.nodes
            self._expansions = max(self._expansions, event["expansions"])
            self.nodes[event["id"]] = event
        elif event["event"] == "visited":
            self.figures.update(event["stats"])
        elif event["event"] == "pruned":
            self.pruned.add(event["node"])
        elif number is not None:
            self.rounds.setdefault(number, {}).update(details(event))
        elif event["event"] in EVENTS:
            self.timeline.add(event)
        elif event["event"] not in ("begin", "end", "merged", "shared"):
            self.notes.append(line(event))
        if "seconds" in event:
            self.cost = {name: event.get(name, 0) for name in COST}
            self._since = time.monotonic()

    def status(self) -> str:
        """Show what has been spent so far, against the limits."""
        limits, seconds = self.context, self.cost["seconds"] + time.monotonic() - self._since
        parts = [
            f"calls {self.cost['model_calls']:,}/{limits.max_model_calls:,}",
            f"tokens {self.cost['total_tokens']:,}/{limits.max_total_tokens:,}",
            f"{seconds:.1f}/{limits.max_seconds:,.0f} s",
        ]
        if limits.max_cost:
            parts.append(f"${self.cost['cost']:,.4f}/{limits.max_cost:g}")
        elif self.cost["cost"]:
            parts.append(f"${self.cost['cost']:,.4f}")
        for name, done in (("expansions", self._expansions), ("rounds", max(self.rounds, default=0))):
            most = getattr(limits, f"max_{name}", None)
            if most is not None:
                parts.insert(0, f"{name} {done}/{most}")
        return "  ".join(parts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the tree or the rounds, then what else happened and the cost, no higher than the screen."""
        notes = [*self.notes, *self.timeline.talk][-_NOTES_SHOWN:]
        height = max(console.height - len(notes) - 3, 1)
        if self.nodes:
            if self._drawn is None or self._drawn[0] != height:
                self._drawn = height, tree_view(self, height)
            yield self._drawn[1]
        elif self.rounds:
            columns, rows = as_table(self.rounds)
            yield table(columns, rows[-height:])
        elif self.timeline.rows:
            yield self.timeline.as_table(height)
        for note in notes:
            yield Text(note, style="dim", no_wrap=True, overflow="ellipsis")
        yield Text(self.status(), style="bold", no_wrap=True, overflow="ellipsis")


def details(event: Event) -> dict[str, Json]:
    """Return the content of an event, without its number, its name and the cost."""
    return {key: value for key, value in event.items() if key not in _PLUMBING}


def line(event: Event) -> str:
    """Format an event as one plain line."""
    parts: list[str] = []
    for key, value in details(event).items():
        if value != {} and key != "stats":
            parts.append(f"{key}={_value(value)}")
    return one_line(f"{event['event']}: {', '.join(parts)}")


def _value(value: Json) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} {shown(part)}" for key, part in value.items())
    return shown(value)


def as_table(rounds: Mapping[int, Mapping[str, Json]]) -> tuple[list[str], list[list[Json]]]:
    """Return the columns and rows of a table of rounds: a column for everything reported of any of them."""
    columns = list(dict.fromkeys(chain.from_iterable(rounds.values())))
    return columns, [list(map(row.get, columns)) for row in rounds.values()]


def tree_view(progress: Progress, height: int) -> Tree:
    """Draw the tree in at most `height` lines: solved and high-scored nodes first, each with its ancestors."""
    nodes = progress.nodes
    chosen = _choose(nodes, height)
    branches: dict[str | None, Tree] = {}
    shown = Counter(nodes[node_id]["parent_id"] for node_id in chosen)
    for node_id, node in nodes.items():
        if node_id in chosen:
            label = _label(node, progress, progress.children[node_id] - shown[node_id])
            parent = branches.get(node["parent_id"])
            branches[node_id] = parent.add(label) if parent else Tree(label)
    return next(iter(branches.values()))


def _choose(nodes: Mapping[str, Event], height: int) -> set[str]:
    # From the best node upwards: a node that is shown has all of its ancestors, or it would hang in the air.
    chosen: set[str] = set()
    for best in sorted(nodes.values(), key=_rank):
        path: list[str] = []
        current: str | None = best["id"]
        while current is not None and current not in chosen and len(chosen) + len(path) <= height:
            path.append(current)
            current = nodes[current]["parent_id"] if current in nodes else None
        if len(chosen) + len(path) <= height:
            chosen.update(path)
        if len(chosen) == height:
            break
    return chosen or {next(iter(nodes))}


def _rank(node: Event) -> tuple[bool, float]:
    """Sort solved nodes first, then by their scores."""
    return not node["solved"], -(node["score"] or 0)


def _label(node: Event, progress: Progress, hidden: int) -> Text:
    text = Text(f"{node['id']} {node['kind']} {shown(node['score'])}", no_wrap=True, overflow="ellipsis")
    if node["solved"]:
        text.append(" solved", style="bold green")
    if node["id"] in progress.pruned:
        text.append(" given up", style="dim")
    visits, total = progress.figures.get(node["id"], (0, 0.0))
    if visits:
        text.append(f"  N {visits:.0f} Q {total / visits:.2f}", style="dim")
    if hidden:
        text.append(f"  (+{hidden} more)", style="dim")
    text.append(f"  {one_line(node['does'])}")
    return text


@contextmanager
def display(progress: Progress) -> Iterator[None]:
    """Show the progress live while the body runs, if stderr is a terminal that can be redrawn."""
    if not redrawable():
        yield
        return
    with Live(progress, console=stderr(), refresh_per_second=8, redirect_stdout=False, redirect_stderr=False):
        yield


def redrawable() -> bool:
    """Tell whether stderr is a terminal on which lines can be redrawn."""
    console = stderr()
    return console.file.isatty() and not console.is_dumb_terminal
