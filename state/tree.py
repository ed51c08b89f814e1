"""The search tree as plain data: what a node says never changes and lies in one channel, its statistics in another."""

from collections.abc import Sequence
from typing import Annotated, Literal

from langchain_core.messages import AnyMessage
from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from state.run import RunState

Kind = Literal["answer", "action"]


class TreeNode(TypedDict):
    """One step of a search. `kind` tells whether it answers or calls tools; `score` (0..1) is None if it was never
    judged."""

    id: str
    parent_id: str | None
    depth: int
    kind: Kind
    messages: list[AnyMessage]
    critique: str
    score: float | None
    solved: bool


class NodeStats(TypedDict):
    """What the search has seen below a node, the node itself included.

    `visits` counts the rewards, `total` is their sum, `children` how many children there are (their ids are `<id>.0`,
    `<id>.1`, ...), and `closed` says that nothing below can be expanded any more.
    """

    visits: int
    total: float
    children: int
    closed: bool


Tree = dict[str, TreeNode]
Stats = dict[str, NodeStats]


def merge_nodes(tree: Tree, writes: Sequence[Tree]) -> Tree:
    """Add new nodes; a node that is already there stays as it is."""
    merged = dict(tree)
    for write in writes:
        for node_id, node in write.items():
            merged.setdefault(node_id, node)
    return merged


def merge_stats(stats: Stats, writes: Sequence[Stats]) -> Stats:
    """Replace the statistics of the nodes written; the last write of a node holds."""
    merged = dict(stats)
    for write in writes:
        merged.update(write)
    return merged


class SearchState(RunState):
    """State of a tree search: `tree` and `stats` are its artefact, `expansions` counts the expansions of this run."""

    tree: Annotated[Tree, DeltaChannel(merge_nodes, snapshot_frequency=1000)]
    stats: Annotated[Stats, DeltaChannel(merge_stats, snapshot_frequency=1000)]
    expansions: int
