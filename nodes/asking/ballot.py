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
from reflective_agents.nodes.acting.react_text import ParsedStep, as_call
from reflective_agents.state.json_types import JsonMapping, JsonObject


class Vote(NamedTuple):
    """What a step wants to do, in normal form: calls by name and arguments, or to answer, and what. Empty if it cannot
    be read."""

    action: str
    answer: str = ""


ANSWER = "answer"
"""To answer, whatever the answer is: those who want that agree first, and then on the answer."""


def elect(
    steps: Sequence[ParsedStep], environment: Environment | None, tools: Sequence[BaseTool], question: str
) -> tuple[ParsedStep, int]:
    """Return the step that most want, the first of equals, and how many want it.

    Args:
        steps: The samples. Those that cannot be read vote only if none can.
        environment: Where the agent acts, if anywhere.
        tools: What it may call.
        question: What it is asked.
    """
    votes = [vote_of(step, environment, tools, question) for step in steps]
    readable = [vote for vote in votes if vote.action] or votes
    [(action, _)] = Counter(vote.action for vote in readable).most_common(1)
    agreeing = [vote for vote in readable if vote.action == action]
    [(winner, count)] = Counter(agreeing).most_common(1)
    return steps[votes.index(winner)], count


def vote_of(step: ParsedStep, environment: Environment | None, tools: Sequence[BaseTool], question: str) -> Vote:
    """Return what a step votes for."""
    if step["answer"] is not None:
        return Vote(ANSWER, (environment or PLAIN).vote(step["answer"], question))
    if not step["action"]:
        return Vote("")
    if environment and not step["messages"]:
        return Vote(environment.canonical(step["action"]))
    message = step["messages"][0] if step["messages"] else as_call(step["action"], tools)
    normal: list[str] = []
    for call in message.tool_calls if isinstance(message, AIMessage) else []:
        args = _normal_args(call["args"], environment or PLAIN)
        normal.append(json.dumps([call["name"], args], sort_keys=True))
    return Vote("\n".join(sorted(normal)))


def _normal_args(args: JsonMapping, environment: Environment) -> JsonObject:
    """Return arguments so that actions that come to the same are equal, and 2 and 2.0."""

    def normal(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return environment.canonical(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return {name: normal(value) for name, value in args.items()}
