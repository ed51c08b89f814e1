"""How the notebooks show things: rows as a table, a graph and a search tree as pictures. Nothing here needs a network.

The notebooks import it as `views`, because a kernel starts in the folder of its notebook.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from textwrap import shorten, wrap
from typing import Any

import matplotlib.pyplot as plt
from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from matplotlib.axes import Axes
from matplotlib.text import Text

from reflective_agents.state.limits import Limit
from reflective_agents.state.outcome import Outcome
from reflective_agents.state.tree import Stats, Tree, TreeNode
from reflective_agents.tree_search.report import summarize_node

INK = "0.35"
"""A grey for lines that are not to stand out."""


class Table:
    """Rows as a table, with a column for each key that occurs but seconds, which are those of one machine.

    What stands in the cells is shown as text, never read as markup, because much of it is a model's.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return "Table"  # without the address, which is another one in each run

    def _repr_html_(self) -> str:
        columns = list(dict.fromkeys(key for row in self.rows for key in row if key != "seconds"))
        head = "".join(f"<th style='text-align: left'>{escape(column)}</th>" for column in columns)
        body = "".join(f"<tr>{''.join(_cell(row.get(column)) for column in columns)}</tr>" for row in self.rows)
        # The class tells Jupyter to leave dollar signs alone.
        return f"<table class='tex2jax_ignore'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
    style = "text-align: left; vertical-align: top; white-space: pre-wrap; max-width: 40em"
    return f"<td style='{style}'>{escape(text)}</td>"


def ending(outcome: Outcome) -> dict[str, str]:
    """Return how a run ended as data, without its reason, whose words are for people and may change.

    Args:
        outcome: The outcome of a run.
    """
    shown: dict[str, str] = {"status": outcome["status"]}
    if "verified_by" in outcome:
        shown["verified_by"] = outcome["verified_by"]
    if "limit" in outcome:
        shown["limit"] = _limit(outcome["limit"])
    return shown


def _limit(limit: Limit) -> str:
    return f"{limit['name']}={limit['most']:.10g}"


WHO = ("id", "node", "agent", "number", "round", "trial", "index", "user")
"""Fields by which an event says whom or what it is about."""
APART = ("seq", "event", "score", "seconds", "model_calls", "total_tokens")
"""Fields of an event that have a column of their own, or differ from run to run."""
ELSEWHERE = ("parent_id", "depth", "expansions", "terms", "stats", "calls", "tokens", "reason")
"""Fields that the tables and pictures of the tree show better; of a reason the status and the limit do."""

NOTHING = ("None", "False", "", "[]", "{}", "same as model")
"""Values that tell nothing; a zero does."""


def events_table(events: Sequence[Mapping[str, Any]], width: int = 110) -> Table:
    """Make a table with one line an event: whom it is about, what happened, the score, and the cost of the run so far.

    Args:
        events: The progress events of a run.
        width: The most characters of what happened.
    """
    rows = [_event_row(event, width) for event in events]
    used = [column for column in rows[0] if any(row[column] is not None for row in rows)] if rows else []
    return Table([{column: row[column] for column in used} for row in rows])


def _event_row(event: Mapping[str, Any], width: int) -> dict[str, Any]:
    who = next((key for key in WHO if key in event), "")
    score = event.get("score")
    return {
        "event": event["event"],
        "of": event.get(who),
        "what happened": shorten("; ".join(_told(event, who)), width, placeholder=" …"),
        "score": None if score is None else round(score, 2),
        "calls": event["model_calls"],
        "tokens": event["total_tokens"],
    }


def _told(event: Mapping[str, Any], who: str) -> Iterable[str]:
    """Say what else an event tells: longer texts as they are, anything short by its name."""
    for key, value in event.items():
        if (
            key in (who, *APART, *ELSEWHERE)
            or value is None
            or value is False
            or value in ("", [], {}, "same as model")
        ):
            continue
        listed = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        text = _limit(value) if key == "limit" else listed
        yield key if value is True else text if " " in text or key == "kind" else f"{key} {text}"


def draw_graph(graph: CompiledStateGraph[Any, Any, Any, Any]) -> None:
    """Draw a graph from left to right: its nodes in a row, what leads on above it, what leads back below.

    A solid arrow is always followed, a dashed one when a router says so.
    """
    drawn = graph.get_graph()
    _, axes = plt.subplots(figsize=(1.55 * len(drawn.nodes), 2.2))
    boxes = {name: axes.text(column, 0, _label(name), **_box(name)) for column, name in enumerate(drawn.nodes)}
    for edge in drawn.edges:
        _draw_edge(axes, boxes[edge.source], boxes[edge.target], "dashed" if edge.conditional else "solid")
    axes.set(xlim=(-0.5, len(boxes) - 0.5), ylim=(-0.8, 1))
    axes.axis("off")
    axes.set_title(f"{graph.name}   (solid: always, dashed: if the router says so)", fontsize=10)
    plt.show()


def _label(name: str) -> str:
    return name.strip("_").upper() if name in (START, END) else name


def _draw_edge(axes: Axes, source: Text, target: Text, line: str) -> None:
    """An arrow from one box of the row to another: straight to the next one, else in a bow."""
    (start, _), (end, _) = source.get_position(), target.get_position()
    arrow: dict[str, Any] = {"arrowstyle": "-|>", "linestyle": line, "color": INK}
    if source is target:
        arrow["connectionstyle"] = "arc3,rad=-1.8"
        axes.annotate("", (start - 0.18, -0.16), (start + 0.18, -0.16), arrowprops=arrow)
        return
    arrow |= {"patchA": source.get_bbox_patch(), "patchB": target.get_bbox_patch()}
    arrow["connectionstyle"] = f"arc3,rad={0 if end == start + 1 else -0.4}"
    axes.annotate("", (end, 0), (start, 0), arrowprops=arrow)


def draw_tree(tree: Tree, stats: Stats, best: Iterable[TreeNode] = ()) -> None:
    """Draw a search tree from left to right, each node with its id, score, visits N, and what it did.

    Args:
        tree: The nodes.
        stats: Their statistics.
        best: The nodes of the best trajectory, drawn bold and joined by thick lines.
    """
    rows = _rows(tree)
    bold = {node["id"] for node in best}
    depths = 1 + max(node["depth"] for node in tree.values())
    _, axes = plt.subplots(figsize=(2.9 * depths, 0.85 * max(rows.values()) + 1.6))
    for node in tree.values():
        if node["parent_id"] is not None:
            ends = [node["depth"] - 1, node["depth"]], [rows[node["parent_id"]], rows[node["id"]]]
            axes.plot(*ends, color="black" if node["id"] in bold else INK, linewidth=3.5 if node["id"] in bold else 0.8)
    for node_id, node in tree.items():
        weight = "bold" if node_id in bold else "normal"
        text = _node_text(node, stats[node_id]["visits"])
        axes.text(node["depth"], rows[node_id], text, fontweight=weight, fontsize=8, **_box(node["kind"]))
    axes.set(xlim=(-0.5, depths - 0.5), ylim=(max(rows.values()) + 0.6, -0.6))
    axes.axis("off")
    axes.set_title("square: acts, round: answers, bold: the best trajectory", fontsize=10)
    plt.show()


def _node_text(node: TreeNode, visits: int) -> str:
    """What stands in a node's box: what it did, in two lines of a few words, below its figures."""
    figures = f"{node['id']}  {_score(node)}  N {visits}{'  solved' if node['solved'] else ''}"
    # A dollar sign would begin a formula.
    did = wrap(summarize_node(node).replace("$", r"\$"), 30, max_lines=2, placeholder=" …")
    return "\n".join([figures, *did])


def _rows(tree: Tree) -> dict[str, float]:
    """The row of each node: leaves below each other, a parent in the middle of its children."""
    rows: dict[str, float] = {}
    leaves = 0

    def row_of(node_id: str) -> float:
        nonlocal leaves
        below = [row_of(node["id"]) for node in tree.values() if node["parent_id"] == node_id]
        rows[node_id] = (below[0] + below[-1]) / 2 if below else float(leaves)
        leaves += not below
        return rows[node_id]

    for node in tree.values():
        if node["parent_id"] is None:
            row_of(node["id"])
    return rows


def _score(node: TreeNode) -> str:
    return "not judged" if node["score"] is None else f"{node['score']:.2f}"


def _box(kind: str) -> dict[str, Any]:
    """How a node is written: answers and the ends of a graph in round boxes, everything else in square ones."""
    shape = "round" if kind in ("answer", START, END) else "square"
    box = {"boxstyle": f"{shape},pad=0.4", "facecolor": "white", "edgecolor": "black"}
    return {"ha": "center", "va": "center", "bbox": box}
