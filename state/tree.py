"""The search tree as plain data: what a node says never changes and lies in one channel, its statistics in another.

`log` tells in which order the tree has grown: from the three of them it can be drawn as it was at any moment.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from state.run import Output, RunState, latest

Kind = Literal["root", "action", "answer"]
RARELY = 5000
"""Super-steps after which a channel is stored whole: a tree that is stored whole more often takes more than it is."""


class TreeNode(TypedDict):
    """One step of a search.

    `kind` tells whether it answers, or acts; the root of a task in an environment is neither. `score` (0..1) is what
    the search makes of it, None if it was never judged, and `terms` are the figures that the score is made of.
    """

    id: str
    parent_id: str | None
    depth: int
    kind: Kind
    messages: list[AnyMessage]
    critique: str
    score: float | None
    solved: bool
    terms: NotRequired[dict[str, float]]
    thought: NotRequired[str]
    action: NotRequired[str]
    observation: NotRequired[str]
    state: NotRequired[dict[str, Any]]
    """The world after the step, without its task, which is the same in every node."""
    reward: NotRequired[float]
    """What the environment gave (0..1)."""
    done: NotRequired[bool]
    """Whether the environment has ended the task here."""
    samples: NotRequired[int]
    """How many samples have come to this step, if more than one."""
    model: NotRequired[str]
    """Which of several models has made it."""


class NodeStats(TypedDict):
    """What the search has seen below a node, the node itself included.

    `visits` counts the rewards, `total` is their sum, `children` how many children there are (their ids are `<id>.0`,
    `<id>.1`, ...), and `closed` says that nothing below can be expanded any more. The others are there only when they
    are needed.
    """

    visits: int
    total: float
    children: int
    closed: bool
    flight: NotRequired[list[int]]
    """First child of each job that is in flight at this node."""
    virtual: NotRequired[int]
    """Jobs in flight at and below this node: each counts as a visit without a reward (virtual loss)."""
    begun: NotRequired[int]
    """At the root: how many rollouts have begun."""
    rollouts: NotRequired[list[str]]
    """At the root: the nodes from which a simulation has to go on."""
    frontier: NotRequired[list[str]]
    """At the root: the nodes of the level that is being expanded."""
    pruned: NotRequired[bool]
    """Whether the algorithm has given this branch up."""
    key: NotRequired[str]
    """The state of the world, as long as the algorithm has to know which nodes are in the same."""
    best: NotRequired[float]
    """The highest reward seen at and below this node."""
    chains: NotRequired[int]
    """How many independent trajectories have come here."""
    prior: NotRequired[float]
    """What a node is thought to be worth before its first visit."""
    reward: NotRequired[float]
    """The node's own reward, which is a part of the rewards passed up from below."""
    votes: NotRequired[list[float]]
    """How many paths have ended in the answer that this node was the first to give, and the sum of their rewards; at
    the root those of all answers."""
    lead: NotRequired[str]
    """At the root: the node whose votes weigh most."""
    arms: NotRequired[dict[str, list[float]]]
    """Count and sum of the scores that each way to go on from here has brought."""
    models: NotRequired[dict[str, list[float]]]
    """At the root: count and sum of the scores that each of several models has brought."""


UNSEEN = NodeStats(visits=0, total=0.0, children=0, closed=False)
"""The statistics of a node of which nothing is known yet."""

Tree = dict[str, TreeNode]
Stats = dict[str, NodeStats]
StatsView = Mapping[str, NodeStats]


class Told(TypedDict):
    """An entry of the log: one job that was carried out.

    `added` are the ids of the new nodes, `stats` the visits and the total of every node that it has changed (but for a
    new one whose figures are its `first_figures`), `calls` and `tokens` what it has cost.
    """

    kind: str
    node: str | None
    added: list[str]
    stats: dict[str, list[float]]
    calls: int
    tokens: int
    merged: NotRequired[int]
    pruned: NotRequired[list[str]]
    failed: NotRequired[bool]
    """Whether models or judges have failed so that nothing came of the job."""
    arm: NotRequired[str]
    """Which of several models has carried it out."""
    narrowed: NotRequired[bool]
    """Whether fewer steps were sampled than should have been, since the calls that were left allowed no more."""
    refused: NotRequired[int]
    """How many steps could not be carried out."""
    why: NotRequired[str]
    """What was said of the last of them, where nothing else came of the job."""


def first_figures(node: TreeNode) -> list[float]:
    """Visits and total of most new nodes: its own score is the first that it has seen."""
    return [1, node["score"] or 0.0]


class Lesson(TypedDict):
    """A reflection on a failed trajectory: the node that it ended in, its answer, and what was learned."""

    node: str
    answer: str
    text: str


def merge_nodes(tree: Tree, writes: Sequence[Tree]) -> Tree:
    """Add new nodes. A node that is already there gains what it had left open, and keeps all else; a step may turn
    out to answer."""
    merged = dict(tree)
    for write in writes:
        for node_id, node in write.items():
            known = merged.get(node_id)
            if known is None:
                merged[node_id] = node
            elif known != node:
                said = {key: value for key, value in known.items() if value not in (None, "") and value is not False}
                said["kind"] = node.get("kind", "action") if known["kind"] == "action" else known["kind"]
                terms = {**node.get("terms", {}), **known.get("terms", {})}
                new = {**known, **node, **said, **({"terms": terms} if terms else {})}
                merged[node_id] = new  # type: ignore[assignment]
    return merged


def merge_stats(stats: Stats, writes: Sequence[Stats]) -> Stats:
    """Replace the statistics of the nodes written; the last write of a node holds."""
    merged = dict(stats)
    for write in writes:
        merged.update(write)
    return merged


def gain_stats(stats: Stats, writes: Sequence[Mapping[str, Mapping[str, Any]]]) -> Stats:
    """Take in what has changed of the statistics, as `changes_of` writes it: half of what whole entries would take."""
    merged = dict(stats)
    for write in writes:
        for node_id, changed in write.items():
            merged[node_id] = {**merged.get(node_id, UNSEEN), **changed}  # type: ignore[typeddict-item]
    return merged


def changes_of(stats: StatsView, before: StatsView) -> dict[str, dict[str, Any]]:
    """What is to be written of statistics: what differs from before, and from a node that has not been seen yet."""
    return {node_id: _changed(node, before.get(node_id, UNSEEN)) for node_id, node in stats.items()}


def _changed(node: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    gone = {key: type(value)() for key, value in before.items() if key not in node}
    return {key: value for key, value in node.items() if key not in before or before[key] != value} | gone


def merge_values(values: dict[str, str], writes: Sequence[dict[str, str]]) -> dict[str, str]:
    """Remember which node was the first in a state of the world."""
    merged = dict(values)
    for write in writes:
        for key, node_id in write.items():
            merged.setdefault(key, node_id)
    return merged


def append(entries: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """The reducer of a list that only grows."""
    return [*entries, *(entry for write in writes for entry in write)]


class SearchOutput(Output):
    """What a search returns; the tree, its statistics and its log are the artefact.

    `reward` is the environment's for the answer; None where there is none.
    """

    tree: Annotated[Tree, DeltaChannel(merge_nodes, snapshot_frequency=RARELY)]
    stats: Annotated[Stats, DeltaChannel(gain_stats, snapshot_frequency=RARELY)]
    log: Annotated[list[Told], DeltaChannel(append, snapshot_frequency=RARELY)]
    lessons: Annotated[list[Lesson], DeltaChannel(append, snapshot_frequency=RARELY)]
    expansions: int
    reward: float | None


class SearchState(RunState, SearchOutput):
    """State of a tree search: `world` is where the task starts, `request` what is asked, `best` the node of the best
    answer, `values` the node that was the first in each state of the world."""

    task: NotRequired[dict[str, Any] | None]
    advice: NotRequired[str | None]
    world: Annotated[dict[str, Any], DeltaChannel(latest, snapshot_frequency=RARELY)]
    request: Annotated[str, DeltaChannel(latest, snapshot_frequency=RARELY)]
    best: str | None
    values: Annotated[dict[str, str], DeltaChannel(merge_values, snapshot_frequency=RARELY)]
