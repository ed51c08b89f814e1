"""A search as plain data: all that is needed to draw its tree at any moment. Every view works on this and nothing else.

Ids say where a node stands: `0` is the root, `0.3.1` the second child of the fourth child of it.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any, Literal, NotRequired, TypedDict, TypeVar

from langchain_core.messages import BaseMessage, ToolMessage

from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.viewer.artefact import check_state
from reflective_agents.viewer.frames import Frame, frames

Aggregate = Literal["mean", "max"]
Kind = Literal["root", "action", "answer"]
N = TypeVar("N", bound=JsonMapping)


class ToolCall(TypedDict):
    """A call of a tool. Its id is what the answer to it names; calls without one are answered in their order."""

    name: str
    args: JsonObject
    id: NotRequired[str | None]


class Message(TypedDict):
    """A message: who says it (`human`, `ai`, `tool`, `system`), what, and what it calls or answers."""

    type: str
    content: str
    tool_calls: list[ToolCall]
    tool_call_id: NotRequired[str | None]


class Node(TypedDict):
    """One step of the search.

    `score` is what the search makes of it and `reward` what the environment gave, both in 0..1 and None if there is
    none; `terms` are the figures that the score is made of, by name. A step in an environment has no messages, but a
    `thought` and an `action`. `done` says that nothing can follow, `samples` how many identical
    candidates became this node, `model` who proposed it.
    """

    id: str
    parent_id: str | None
    depth: int
    kind: Kind
    messages: list[Message]
    thought: str
    action: str
    observation: str
    critique: str
    score: float | None
    reward: float | None
    terms: dict[str, float]
    solved: bool
    done: bool
    samples: int
    model: str


class Reflection(TypedDict):
    """A lesson that was drawn from the failed trajectory that ends at `node`; of one that was brought along, `node` is
    empty."""

    node: str
    text: str


class Picture(TypedDict):
    """A search: its question and how it ended, its nodes by id, its history, and the path that was chosen in the end.

    `conversation` holds the messages up to the question, `weight` is the w of UCT, None if the search does not select
    by it, `aggregate` what the search makes of the values that a node has seen, `path` goes from the root down.
    """

    strategy: str
    question: str
    conversation: list[Message]
    answer: str | None
    outcome: dict[str, str] | None
    usage: dict[str, float]
    weight: float | None
    aggregate: Aggregate
    nodes: dict[str, Node]
    frames: list[Frame]
    path: list[str]
    reflections: list[Reflection]


_NEEDED = ("tree", "stats")


def picture(values: JsonMapping, strategy: str, weight: float | None = None, aggregate: Aggregate = "mean") -> Picture:
    """Build the picture of a run.

    Args:
        values: The state of the run, with `tree`, `stats`, `log` and the channels that every strategy has.
        strategy: Its name.
        weight: The w of UCT; None if the search does not select by it.
        aggregate: Whether the search goes by the mean or the highest of the values that a node has seen.

    Raises:
        Misuse: if the run has no tree.
    """
    check_state(values, _NEEDED, "a tree")
    spoken = values.get("messages") or []
    # What follows the last question is the answer, which the tree holds as well.
    end_of_question = 0
    for number, message in enumerate(spoken, 1):
        if message.type == "human":
            end_of_question = number
    nodes = {key: _node(node) for key, node in values["tree"].items()}
    path = path_to(nodes, values.get("best") or _best(nodes))
    reflections: list[Reflection] = []
    for lesson in values.get("lessons") or []:
        reflections.append({"node": lesson["node"], "text": lesson["text"]})
    data = {
        "strategy": strategy,
        "question": spoken[end_of_question - 1].text if end_of_question else "",
        "conversation": [_message(message) for message in spoken[:end_of_question]],
        "weight": weight,
        "aggregate": aggregate,
        "nodes": nodes,
        "frames": frames(values),
        "path": [node["id"] for node in path],
        "reflections": reflections,
        "answer": values.get("answer"),
        "outcome": values.get("outcome"),
        "usage": values.get("usage"),
    }
    return complete(data)


def complete(data: JsonMapping) -> Picture:
    """Complete a picture: what is missing or None is filled in, and each node is added by one frame.

    Raises:
        ValueError: if the nodes do not form a tree.
    """
    nodes = {key: _filled(_NODE, {**node, "id": key}) for key, node in data["nodes"].items()}
    roots: list[str] = []
    lost: list[str] = []
    for key, node in nodes.items():
        if node["parent_id"] is None:
            roots.append(key)
        elif node["parent_id"] not in nodes:
            lost.append(key)
    if len(roots) != 1 or lost:
        raise ValueError(f"the nodes do not form a tree: roots {roots}, without their parents {lost}")
    history = [_frame(number, frame, nodes) for number, frame in enumerate(data.get("frames") or [{}])]
    added = set(chain.from_iterable(frame["added"] for frame in history))
    history[-1]["added"] += [key for key in nodes if key not in added]
    path = [key for key in data.get("path") or [] if key in nodes]
    whole: Any = _filled(_PICTURE, {**data, "nodes": nodes, "frames": history, "path": path})
    made: Picture = whole
    return made


_NODE: JsonObject = {
    "messages": [],
    "thought": "",
    "action": "",
    "observation": "",
    "critique": "",
    "score": None,
    "reward": None,
    "terms": {},
    "solved": False,
    "done": False,
    "samples": 1,
    "model": "",
}
_FRAME: JsonObject = {
    "event": "start",
    "node": None,
    "added": [],
    "merged": 0,
    "pruned": [],
    "reflection": "",
    "stats": {},
    "calls": 0,
    "tokens": 0,
}
_PICTURE: JsonObject = {
    "strategy": "",
    "question": "",
    "conversation": [],
    "answer": None,
    "outcome": None,
    "usage": {},
    "weight": None,
    "aggregate": "mean",
    "path": [],
    "reflections": [],
}


def _filled(defaults: JsonMapping, values: JsonMapping) -> JsonObject:
    filled = dict(defaults)
    for key, value in values.items():
        if value is not None or key not in defaults:
            filled[key] = value
    return filled


def _frame(number: int, frame: JsonMapping, nodes: JsonMapping) -> JsonObject:
    made = _filled(_FRAME, {"number": number, **frame})
    made["added"] = [key for key in made["added"] if key in nodes]
    made["pruned"] = [key for key in made["pruned"] if key in nodes]
    return made


def _node(node: JsonMapping) -> JsonObject:
    """Convert a node of the state: messages as data, and its action and observation in words unless it has its own."""
    messages = list(map(_message, node.get("messages") or []))
    calls: list[str] = []
    observed: list[str] = []
    for message in messages:
        calls += map(called, message["tool_calls"])
        if message["type"] == "tool":
            observed.append(message["content"])
    stored = {key: node[key] for key in Node.__annotations__ if key in node}
    return {"action": ", ".join(calls), "observation": "\n".join(observed), **stored, "messages": messages}


def _message(message: BaseMessage) -> Message:
    made = Message(type=message.type, content=message.text, tool_calls=[])
    for call in getattr(message, "tool_calls", []):
        made["tool_calls"].append({"name": call["name"], "args": call["args"], "id": call["id"]})
    if isinstance(message, ToolMessage):
        made["tool_call_id"] = message.tool_call_id
    return made


def called(call: ToolCall) -> str:
    """Shorten a tool call to its name, and its arguments without their names."""
    return f"{call['name']}({', '.join(map(str, call['args'].values()))})"


def _best(nodes: Mapping[str, JsonMapping]) -> str:
    """Return the node that would be chosen if the tree search ended now: solved first, then answers before steps."""

    def rank(key: str) -> tuple[bool, bool, float]:
        node = nodes[key]
        return bool(node.get("solved")), node["kind"] == "answer", worth(node) or 0.0

    return max(nodes, key=rank)


def worth(node: JsonMapping) -> float | None:
    """Return the value of a node by itself: the environment's reward, else the judge's score, else None."""
    return node.get("score") if node.get("reward") is None else node["reward"]


def path_to(nodes: Mapping[str, N], key: str) -> list[N]:
    """Return the nodes from the root down to a node, both included."""
    path: list[N] = []
    current: str | None = key
    while current is not None:
        path.append(nodes[current])
        current = nodes[current]["parent_id"]
    return path[::-1]
