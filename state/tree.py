"""The search tree as plain data: the nodes, which never change, in one channel, their statistics in another.

`log` records the order in which the tree has grown: from these three channels it can be drawn as it was at any moment.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NotRequired, TypeVar, cast

from langchain_core.messages import AnyMessage
from langgraph.channels import DeltaChannel
from typing_extensions import TypedDict

from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.state.lists import append, first_written
from reflective_agents.state.run import Output, RunState, latest

T = TypeVar("T")
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
    state: NotRequired[JsonObject]
    """The world after the step, without its task, which is the same in every node."""
    reward: NotRequired[float]
    """What the environment gave (0..1)."""
    done: NotRequired[bool]
    """Whether the environment has ended the task here."""
    checked: NotRequired[str]
    """What code has found out about the sources of an answer."""
    unfounded: NotRequired[bool]
    """Whether an answer refers to what no search has found: it cannot be accepted."""
    samples: NotRequired[int]
    """How many samples have come to this step, if more than one."""
    model: NotRequired[str]
    """Which of several models has made it."""
    rescored: NotRequired[bool]
    """Whether a person has set the score."""
    pruned: NotRequired[bool]
    """Whether a person has given up the node, and with it all below."""
    hint: NotRequired[str]
    """What a person says to whoever goes on from here."""


class NodeStats(TypedDict):
    """What a tree search has seen below a node, the node itself included.

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
    own: NotRequired[JsonObject]
    """What the algorithm alone needs. Views show `pruned`, `prior` and `best` where an algorithm notes them."""


UNSEEN = NodeStats(visits=0, total=0.0, children=0, closed=False)
"""The statistics of a node of which nothing is known yet."""

Tree = dict[str, TreeNode]
TreeView = Mapping[str, TreeNode]
Stats = dict[str, NodeStats]
StatsView = Mapping[str, NodeStats]


class LogEntry(TypedDict):
    """One job that was carried out.

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
    """What was said of the last of them, or of what has failed, where nothing else came of the job."""
    change: NotRequired["Change"]
    """What a person has ordered, where that was the job; `said` tells why it was not done, if it was not."""
    said: NotRequired[str]


class Change(TypedDict):
    """What a person changes in a tree search: a node is given up, its score set, or hinted at; limits are raised; or it
    is to answer now."""

    kind: Literal["prune", "rescore", "hint", "more", "stop"]
    node: NotRequired[str]
    score: NotRequired[float]
    text: NotRequired[str]
    limits: NotRequired[dict[str, float]]
    """By how much each of them is raised, by the name of its setting."""


class Order(TypedDict):
    """What a person orders, who has `seen` so many changes in the log of the search; it takes the place of so many that
    are still waiting, as where the person goes back to before they were carried out."""

    seen: int
    changes: list[Change]
    instead: NotRequired[int]


def queued(waiting: list[Order], new: list[Order]) -> list[Order]:
    """Reduce the orders that wait: new ones are queued, and none is left once an empty list is written."""
    replaced = new[0].get("instead", 0) if new and isinstance(new[0], dict) else 0
    return [*waiting[replaced:], *new] if new else []


def first_figures(node: TreeNode) -> list[float]:
    """Return the visits and total of most new nodes: a node's own score is the first value that it sees."""
    return [1, node["score"] or 0.0]


class Lesson(TypedDict):
    """A reflection on a failed trajectory: the node that it ended in, its answer, and what was learned. What
    was learned in `earlier` runs comes from no node."""

    node: str
    answer: str
    text: str
    earlier: NotRequired[bool]


def merge_nodes(tree: Tree, writes: Sequence[Tree]) -> Tree:
    """Add new nodes. A node that is already there gains what it had left open, and keeps all else; a step may turn
    out to answer, and a person may set its score."""
    merged = dict(tree)
    for write in writes:
        for node_id, node in write.items():
            before = merged.get(node_id)
            if before is None:
                merged[node_id] = node
            elif before != node:
                merged[node_id] = _merge_node(before, node)
    return merged


def _merge_node(before: TreeNode, node: TreeNode) -> TreeNode:
    fixed: JsonObject = {}
    for key, value in before.items():
        if value not in (None, "") and value is not False:
            fixed[key] = value
    by_hand = ("score", "solved", "hint") if node.get("rescored") else ("hint",)
    for name in by_hand:
        if name in node:
            fixed[name] = node[name]  # type: ignore[literal-required]
    fixed["kind"] = node.get("kind", "action") if before["kind"] == "action" else before["kind"]
    if terms := {**node.get("terms", {}), **before.get("terms", {})}:
        fixed["terms"] = terms
    return cast(TreeNode, {**before, **node, **fixed})


def merge_stats(stats: Stats, writes: Sequence[Stats]) -> Stats:
    """Replace the statistics of the nodes written; the last write of a node holds."""
    merged = dict(stats)
    for write in writes:
        merged.update(write)
    return merged


def gain_stats(stats: Stats, writes: Sequence[Mapping[str, JsonMapping]]) -> Stats:
    """Apply changes of the statistics, as `changes_of` writes them: they take half of what whole entries would."""
    merged = dict(stats)
    for write in writes:
        for node_id, changed in write.items():
            before = merged.get(node_id, UNSEEN)
            extra = {**before.get("own", {}), **changed.get("own", {})}
            own = {"own": extra} if extra else {}
            merged[node_id] = cast(NodeStats, {**before, **changed, **own})
    return merged


def changes_of(stats: StatsView, before: StatsView) -> dict[str, JsonObject]:
    """Return what has to be written of statistics: the changes since `before`, or since a node not visited yet."""
    return {node_id: _changed(node, before.get(node_id, UNSEEN)) for node_id, node in stats.items()}


def _changed(node: NodeStats, before: NodeStats) -> JsonObject:
    changed = _differing({**node, "own": 0}, {**before, "own": 0})
    extra = _differing(node.get("own", {}), before.get("own", {}))
    return {**changed, "own": extra} if extra else changed


def _differing(new: JsonMapping, before: JsonMapping) -> JsonObject:
    changed: JsonObject = {}
    for key, value in new.items():
        if key not in before or before[key] != value:
            changed[key] = value
    for key, value in before.items():
        if key not in new:
            changed[key] = type(value)()  # a merge cannot take it away
    return changed


class SearchOutput(Output):
    """What a search returns; the tree, its statistics and its log are the artefact.

    `reward` is the environment's for the answer; None where there is none.
    """

    tree: Annotated[Tree, DeltaChannel(merge_nodes, snapshot_frequency=RARELY)]
    stats: Annotated[Stats, DeltaChannel(gain_stats, snapshot_frequency=RARELY)]
    log: Annotated[list[LogEntry], DeltaChannel(append, snapshot_frequency=RARELY)]
    lessons: Annotated[list[Lesson], DeltaChannel(append, snapshot_frequency=RARELY)]
    expansions: int
    reward: float | None


class SearchState(RunState, SearchOutput):
    """State of a tree search: `world` is where the task starts, `request` what is asked, `best` the node of the best
    answer, `values` the node that was the first in each state of the world, `orders` what people have ordered that is
    not done yet, and `guess` the last answer that followed an action before its result was known."""

    task: NotRequired[JsonObject | None]
    advice: NotRequired[str | None]
    world: Annotated[JsonObject, DeltaChannel(latest, snapshot_frequency=RARELY)]
    request: Annotated[str, DeltaChannel(latest, snapshot_frequency=RARELY)]
    best: str | None
    values: Annotated[dict[str, str], DeltaChannel(first_written, snapshot_frequency=RARELY)]
    orders: NotRequired[Annotated[list[Order], queued]]
    guess: NotRequired[str | None]
