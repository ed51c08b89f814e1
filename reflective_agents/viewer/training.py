"""What a search has to teach: preference pairs and examples, in the chat format that trainers and providers take."""

import json
from collections.abc import Iterator
from itertools import takewhile
from operator import itemgetter
from typing import Literal

from reflective_agents.state.json_types import JsonObject
from reflective_agents.viewer.figures import children
from reflective_agents.viewer.picture import Message, Node, Picture, ToolCall, path_to, worth

Chat = list[JsonObject]
Pairs = Literal["siblings", "trajectories"]

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


def preferences(picture: Picture, pairs: Pairs = "siblings", margin: float = 0.1) -> list[dict[str, Chat]]:
    """Collect pairs of a better and a worse node: `prompt`, `chosen`, `rejected`, each a list of messages.

    A node is worth its reward, else the judge's score; nodes with neither are left out.

    Args:
        picture: The search.
        pairs: `siblings` puts the best child of each node before each of its worse siblings, as the next turn after
            the way to their parent. `trajectories` puts the best answer with all its steps before each worse one.
        margin: By how much the first must be better, in 0..1. Equal ones never make a pair.
    """
    return list(_siblings(picture, margin) if pairs == "siblings" else _trajectories(picture, margin))


def examples(picture: Picture, min_score: float | None = None) -> list[dict[str, Chat]]:
    """Turn the chosen trajectory into an example for fine-tuning: question, steps and answer, as `messages`.

    Args:
        picture: The search.
        min_score: What the answer must be worth at least, in 0..1; None if it must be solved.

    Returns:
        One example, or none if the search found nothing that is good enough.
    """
    if not picture["path"]:
        return []
    end = picture["nodes"][picture["path"][-1]]
    good = end["solved"] if min_score is None else (worth(end) or 0.0) >= min_score
    if not good:
        return []
    return [{"messages": [*_conversation(picture), *_trajectory(picture, end)]}]


def _siblings(picture: Picture, margin: float) -> Iterator[dict[str, Chat]]:
    ways: dict[str, Chat] = {}  # all turns down to a node: those of its parent, and its own
    for parent, siblings in children(picture).items():
        if parent is None:
            continue
        node = picture["nodes"][parent]
        before = ways[node["parent_id"]] if node["parent_id"] else _conversation(picture)
        prompt = ways[parent] = [*before, *_turns(node), *_critique(node)]
        for best, worse in _ranked(siblings, margin):
            yield {"prompt": prompt, "chosen": _turn(best), "rejected": _turn(worse)}


def _trajectories(picture: Picture, margin: float) -> Iterator[dict[str, Chat]]:
    ends = [node for node in picture["nodes"].values() if node["kind"] == "answer"]
    for best, worse in _ranked(ends, margin):
        yield {
            "prompt": _conversation(picture),
            "chosen": _trajectory(picture, best),
            "rejected": _trajectory(picture, worse),
        }


def _ranked(nodes: list[Node], margin: float) -> Iterator[tuple[Node, Node]]:
    """Pair the best node with each that is worse by the margin."""
    valued: list[tuple[float, Node]] = []
    for node in nodes:
        value = worth(node)
        if value is not None:
            valued.append((value, node))
    if not valued:
        return
    top, best = max(valued, key=itemgetter(0))
    for value, node in valued:
        difference = round(top - value, 9)  # 0.7 - 0.6 is a little less than 0.1
        if difference > 0 and difference >= margin:
            yield best, node


def _conversation(picture: Picture) -> Chat:
    if not picture["conversation"]:
        return [{"role": "user", "content": picture["question"]}]
    return _chat(picture["conversation"], "question")


def _critique(node: Node) -> Chat:
    """Return the critique of an answer on the way, which follows it as the user's turn."""
    if node["kind"] == "answer" and node["critique"]:
        return [{"role": "user", "content": node["critique"]}]
    return []


def _trajectory(picture: Picture, end: Node) -> Chat:
    """Return the turns that lead to an answer, without the answers that were given up for it on the way."""
    turns: Chat = []
    for node in path_to(picture["nodes"], end["id"]):
        if node is end or node["kind"] != "answer":
            turns += _turns(node)
    return turns


def _turn(node: Node) -> Chat:
    """Return what the model itself says at a node, without the replies to it."""
    return list(takewhile(lambda turn: turn["role"] == "assistant", _turns(node)))


def _turns(node: Node) -> Chat:
    if node["messages"]:
        return _chat(node["messages"], node["id"])
    turns: Chat = []
    text = "\n".join(filter(None, (node["thought"], node["action"])))
    if text:
        turns.append({"role": "assistant", "content": text})
    if node["observation"]:
        turns.append({"role": "user", "content": node["observation"]})
    return turns


def _chat(messages: list[Message], stem: str) -> Chat:
    """Convert messages to the chat format.

    A tool message that does not name its call answers the next one; without a call it is left out, as providers demand.
    """
    chat: Chat = []
    waiting: list[str] = []
    for message in messages:
        made: JsonObject = {"role": _ROLES.get(message["type"], message["type"]), "content": message["content"]}
        calls = [_call(call, f"call_{stem}_{len(chat)}_{index}") for index, call in enumerate(message["tool_calls"])]
        if calls:
            made["tool_calls"] = calls
            waiting = [call["id"] for call in calls]
        if message["type"] == "tool":
            answered = message.get("tool_call_id") or next(iter(waiting), None)
            if answered not in waiting:
                continue
            waiting.remove(answered)
            made["tool_call_id"] = answered
        chat.append(made)
    return chat


def _call(call: ToolCall, name: str) -> JsonObject:
    function = {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False)}
    return {"id": call.get("id") or name, "type": "function", "function": function}
