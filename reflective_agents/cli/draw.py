"""`reflect draw`: a strategy as a Mermaid diagram, and what a run on a thread has come to as text."""

import asyncio

from reflective_agents.cli.artefact import replay
from reflective_agents.cli.options import make_context
from reflective_agents.cli.output import print_table, stdout
from reflective_agents.cli.progress import Progress, as_table
from reflective_agents.cli.threads import exists, load, open_saver, read_thread, stored_settings
from reflective_agents.cli.tree import picture_of, tree_view
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import settings_of


def draw_graph(strategy: str) -> int:
    """Write the graph of a strategy as Mermaid text."""
    print(load(strategy).get_graph().draw_mermaid())
    return 0


def draw_thread(strategy: str, thread: str) -> int:
    """Write what the last run on a thread has come to: its search tree as `reflect tree` does, or its rounds.

    Raises:
        Misuse: if there is no such thread, or nothing on it yet.
    """
    values, settings = asyncio.run(_read(strategy, thread))
    if values.get("tree"):
        stdout().print(tree_view(picture_of(values, strategy, settings)))
        return 0
    progress = Progress(make_context(settings_of(strategy), settings))
    for event in replay(values):
        progress.add(event)
    if progress.timeline.rows:
        print_table(progress.timeline.columns(), progress.timeline.lines())
        return 0
    if not progress.rounds:
        ended = values.get("outcome")
        why = f"its run ended before the first step: {ended['reason']}" if ended else "it holds no step yet"
        way = "..." if ended else "--resume"
        raise Misuse(f"thread {thread}: {why}; reflect run {strategy} --thread {thread} {way}")
    print_table(*as_table(progress.rounds))
    return 0


async def _read(strategy: str, thread: str) -> tuple[JsonObject, JsonObject]:
    async with open_saver() as saver:
        state = await read_thread(load(strategy, saver), saver, thread)
    if not exists(state):
        raise Misuse(f"there is no thread {thread}: reflect threads lists them")
    return state.values, stored_settings(state)
