"""Votes over next steps: of several that were sampled at once, the one that most of them want is taken."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from pydantic import JsonValue

from reflective_agents.environments.base import Environment
from reflective_agents.environments.plain import PLAIN
from reflective_agents.nodes.acting.react_text import Move, as_call
from reflective_agents.state.json_types import JsonMapping, JsonObject


class Wish(NamedTuple):
    """What a step wants, in normal form: calls by name and arguments, or to answer, and what. Empty if it cannot be
    read."""

    what: str
    answer: str = ""


ANSWER = "answer"
"""To answer, whatever the answer is: those who want that agree first, and then on the answer."""


def elect(
    moves: Sequence[Move], environment: Environment | None, tools: Sequence[BaseTool], question: str
) -> tuple[Move, int]:
    """Return the step that most want, the first of equals, and how many want it.

    Args:
        moves: The samples. Those that cannot be read vote only if none can.
        environment: Where the agent acts, if anywhere.
        tools: What it may call.
        question: What it is asked.
    """
    wishes = [wish(move, environment, tools, question) for move in moves]
    readable = [one for one in wishes if one.what] or wishes
    what, _ = Counter(one.what for one in readable).most_common(1)[0]
    winner, votes = Counter(one for one in readable if one.what == what).most_common(1)[0]
    return moves[wishes.index(winner)], votes


def wish(move: Move, environment: Environment | None, tools: Sequence[BaseTool], question: str) -> Wish:
    """Return what a step wants."""
    if move["answer"] is not None:
        return Wish(ANSWER, (environment or PLAIN).vote(move["answer"], question))
    if not move["action"]:
        return Wish("")
    if environment and not move["messages"]:
        return Wish(environment.canonical(move["action"]))
    message = move["messages"][0] if move["messages"] else as_call(move["action"], tools)
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    wanted = [[call["name"], _normal(call["args"], environment or PLAIN)] for call in calls]
    return Wish("\n".join(sorted(json.dumps(call, sort_keys=True) for call in wanted)))


def _normal(args: JsonMapping, world: Environment) -> JsonObject:
    """Return arguments so that actions that come to the same are equal, and 2 and 2.0."""

    def normal(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return world.canonical(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return {name: normal(value) for name, value in args.items()}
