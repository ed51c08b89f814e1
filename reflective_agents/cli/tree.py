"""`reflect tree`: the tree of a search as text, as a page to look at, and as data to go on with."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text
from rich.tree import Tree as View

from reflective_agents.cli.exports import Export, check_targets, write
from reflective_agents.cli.options import make_context
from reflective_agents.cli.output import one_line, say, stdout
from reflective_agents.cli.threads import (
    Saver,
    config_of,
    exists,
    load,
    open_saver,
    owner_of,
    read_thread,
    recent,
    stored_settings,
)
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.state.settings import settings_of, strategy_names
from reflective_agents.viewer.figures import children, figures, marks, numbers, pruned, says
from reflective_agents.viewer.frames import Figures
from reflective_agents.viewer.mermaid import MOST_EDGES, mermaid
from reflective_agents.viewer.page import page
from reflective_agents.viewer.picture import Aggregate, Node, Picture, picture
from reflective_agents.viewer.training import Pairs, examples, preferences


@dataclass(frozen=True)
class TreeRequest:
    """What the user asks for: a run, by the name of its thread, and where its tree goes to. None is not asked for."""

    run: str | None = None
    as_json: str | None = None
    as_mermaid: str | None = None
    html: str | None = None
    preferences: str | None = None
    pairs: Pairs = "siblings"
    margin: float = 0.1
    finetune: str | None = None
    min_score: float | None = None
    force: bool = False

    @property
    def targets(self) -> dict[str, str | None]:
        """The files by their options."""
        return {
            "--json": self.as_json,
            "--mermaid": self.as_mermaid,
            "--html": self.html,
            "--preferences": self.preferences,
            "--finetune": self.finetune,
        }


def tree(request: TreeRequest) -> int:
    """Write the tree of a run: on the terminal, or into the files that were asked for.

    Raises:
        Misuse: if there is no such run, it has no tree, there is nothing to export, or a file cannot be written.
    """
    check_targets(request.targets, request.force)
    search = asyncio.run(_read(request.run))
    exports = list(_exports(search, request))
    if exports:
        write(exports, request.force)
    else:
        stdout().print(tree_view(search))
    return 0


async def _read(run: str | None) -> Picture:
    async with open_saver() as saver:
        name, strategy = (run, await strategy_of(saver, run)) if run else await _latest(saver)
        state = await read_thread(load(strategy, saver), saver, name)
    if not state.values.get("tree"):
        raise Misuse(f"thread {name} holds no tree: reflect draw {strategy} --thread {name} shows what it holds")
    return picture_of(state.values, strategy, stored_settings(state))


def picture_of(values: JsonMapping, strategy: str, settings: JsonMapping) -> Picture:
    """Build the picture of a run from its state and the settings that it was given."""
    context = make_context(settings_of(strategy), settings)
    weight: float | None = getattr(context, "exploration_weight", None)
    aggregate: Aggregate = getattr(context, "aggregate", "mean")
    return picture(values, strategy, weight, aggregate)


async def strategy_of(saver: Saver, thread: str) -> str:
    """Return the strategy that a thread belongs to.

    Raises:
        Misuse: if there is no such thread, or no such strategy.
    """
    saved = await saver.aget_tuple(config_of(thread))
    if saved is None:
        raise Misuse(f"there is no thread {thread}: reflect threads lists them")
    strategy = owner_of(saved)
    if strategy not in strategy_names():
        raise Misuse(f"thread {thread} belongs to {strategy}, which this command does not have")
    return strategy


async def _latest(saver: Saver) -> tuple[str, str]:
    """Name and strategy of the latest thread that holds a tree."""
    for name, strategy in await recent(saver):
        if strategy not in strategy_names():
            continue
        graph = load(strategy, saver)
        if "tree" in graph.channels:
            state = await graph.aget_state(config_of(name))
            if exists(state) and state.values.get("tree"):
                return name, strategy
    raise Misuse('no run has left a tree: make one with: reflect run lats "..."')


def _exports(search: Picture, request: TreeRequest) -> Iterator[Export]:
    if request.as_json is not None:
        yield Export("--json", request.as_json, json.dumps(search, ensure_ascii=False) + "\n")
    if request.as_mermaid is not None:
        edges = len(search["nodes"]) - 1
        if edges > MOST_EDGES:
            say(f"note: the tree has {edges:,} edges; Mermaid draws {MOST_EDGES} unless its maxEdges allows more")
        yield Export("--mermaid", request.as_mermaid, mermaid(search))
    if request.html is not None:
        yield Export("--html", request.html, page(search))
    if request.preferences is not None:
        rows = preferences(search, request.pairs, request.margin)
        yield _lines("--preferences", request.preferences, rows, f"no two {request.pairs} differ by {request.margin}")
    if request.finetune is not None:
        unsolved = "is not solved; --min-score takes it by its score"
        reason = unsolved if request.min_score is None else f"is not worth {request.min_score}"
        rows = examples(search, request.min_score)
        yield _lines("--finetune", request.finetune, rows, f"the best trajectory {reason}")


def _lines(option: str, target: str, rows: Sequence[JsonMapping], otherwise: str) -> Export:
    if not rows:
        raise Misuse(f"{option}: nothing to write, for {otherwise}")
    return Export(option, target, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in rows))


def tree_view(search: Picture) -> View:
    """Draw the search tree with the statistics of each node: N visits, Q its value, UCT."""
    below, seen, given_up = children(search), figures(search), pruned(search)
    root = below[None][0]
    view = View(_label(search, root, seen, given_up))
    # Without recursion: a tree may be deeper than Python's stack.
    waiting = [(root, view)]
    while waiting:
        parent, branch = waiting.pop()
        for node in below.get(parent["id"], []):
            waiting.append((node, branch.add(_label(search, node, seen, given_up))))
    return view


def _label(search: Picture, node: Node, seen: Mapping[str, Figures], given_up: set[str]) -> Text:
    parts = [node["id"], node["kind"], *numbers(search, node, seen)]
    text = Text(" ".join(parts), no_wrap=True, overflow="ellipsis")
    for mark in marks(search, node["id"], given_up):
        text.append(f" {mark}", style="bold green" if mark != "pruned" else "dim")
    return text.append(f"  {one_line(says(search, node), 60)}", style="dim")
