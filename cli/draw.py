"""`reflect draw`: a strategy as a Mermaid diagram, and what a run on a thread has come to as text."""

import asyncio
from typing import Any

from rich.text import Text
from rich.tree import Tree as View

from cli.artefact import replay
from cli.options import make_context
from cli.output import one_line, print_table, stdout
from cli.progress import Progress, as_table
from cli.strategies import load, settings_of
from cli.threads import exists, open_saver, read_thread, settings_kept
from search.mcts import best_answer, uct, value
from state.context import Context
from state.errors import Misuse
from state.tree import Stats, Tree, TreeNode


def draw_graph(strategy: str) -> int:
    """Write the graph of a strategy as Mermaid text."""
    print(load(strategy).get_graph().draw_mermaid())
    return 0


def draw_thread(strategy: str, thread: str) -> int:
    """Write what the last run on a thread has come to: its search tree, or its rounds.

    Raises:
        Misuse: if there is no such thread, or nothing on it yet.
    """
    values, context = asyncio.run(_read(strategy, thread))
    if values.get("tree"):
        view = tree_view(values["tree"], values["stats"], getattr(context, "exploration_weight", 0.0))
        stdout().print(view)
        return 0
    progress = Progress(context)
    for event in replay(values):
        progress.add(event)
    if not progress.rounds:
        raise Misuse(f"thread {thread} holds no step yet: reflect run {strategy} --thread {thread} --resume")
    print_table(*as_table(progress.rounds))
    return 0


async def _read(strategy: str, thread: str) -> tuple[dict[str, Any], Context]:
    async with open_saver() as saver:
        state = await read_thread(load(strategy, saver), saver, thread)
    if not exists(state):
        raise Misuse(f"there is no thread {thread}: reflect threads lists them")
    return state.values, make_context(settings_of(strategy), settings_kept(state))


def tree_view(tree: Tree, stats: Stats, weight: float) -> View:
    """The search tree with what the search knows of each node: N visits, Q mean score, UCT."""
    best = best_answer(tree)
    views: dict[str, View] = {}
    for node_id, node in tree.items():
        label = _label(node, stats, weight, is_best=node is best)
        parent = views.get(node["parent_id"] or "")
        views[node_id] = parent.add(label) if parent else View(label)
    return next(iter(views.values()))


def _label(node: TreeNode, stats: Stats, weight: float, is_best: bool) -> Text:
    own, parent = stats[node["id"]], stats.get(node["parent_id"] or "")
    text = Text(f"{node['id']} {node['kind']} N={own['visits']} Q={value(own):.2f}", no_wrap=True, overflow="ellipsis")
    if parent:
        text.append(f" UCT={uct(own, parent['visits'], weight):.2f}")
    for mark, holds in (("solved", node["solved"]), ("best", is_best)):
        if holds:
            text.append(f" {mark}", style="bold green")
    return text.append(f"  {first_words(node)}", style="dim")


def first_words(node: TreeNode, length: int = 60) -> str:
    """The beginning of what a node says: its text, else the tools that it calls."""
    message: Any = node["messages"][0]
    calls = ", ".join(f"{call['name']}({', '.join(map(str, call['args'].values()))})" for call in message.tool_calls)
    return one_line(message.text or calls, length)
