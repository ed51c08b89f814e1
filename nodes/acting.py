"""Acting: reading what an agent wants to do, and doing it in an environment or with tools."""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel
from typing_extensions import TypedDict

import telemetry
from environments.base import Environment, State, Transition
from environments.registry import final_action
from nodes.research import act
from nodes.step import Step

_ACTION = re.compile(r"^\s*Action(?:\s*\d+)?\s*:(?!\s*Input)\s*(.*)", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_INPUT = re.compile(r"^(.*?)\n\s*Action Input(?:\s*\d+)?\s*:\s*(.*)", re.IGNORECASE | re.DOTALL)
_FINAL = re.compile(r"^\s*Final Answer\s*:\s*(.*)", re.IGNORECASE | re.MULTILINE | re.DOTALL)
_OBSERVATION = re.compile(r"^\s*Observation(?:\s*\d+)?\s*:", re.IGNORECASE | re.MULTILINE)
_NAMED = re.compile(r"\s*([\w.-]+)\s*\[(.*)\]", re.DOTALL)
_THOUGHT = re.compile(r"^\s*Thought(?:\s*\d+)?\s*:\s*", re.IGNORECASE)


class Move(TypedDict):
    """What an agent wants to do next: an action or an answer, or neither if that could not be read.

    `messages` holds its message in the mode of native tool calls.
    """

    thought: str
    action: str
    answer: str | None
    messages: list[AnyMessage]


class ActionStep(TypedDict):
    """One step that was taken, with what it brought. `valid` is False if the action was unreadable or refused."""

    thought: str
    action: str
    observation: str
    valid: bool
    messages: list[AnyMessage]


class Effect(NamedTuple):
    """What came of a move: the step, where the world stands now, the reward if it is decided, and an answer."""

    step: ActionStep
    world: dict[str, Any]
    reward: float | None = None
    done: bool = False
    answer: str | None = None


def read_move(text: str) -> Move:
    """Read a step written as text, in either published form: `Action: Search[x]`, or `Action:` with `Action Input:`.

    Whatever the model writes from an observation on is its own invention and is not read.
    """
    invented = _OBSERVATION.search(text)
    text = (text[: invented.start()] if invented else text).strip()
    action, final = _ACTION.search(text), _FINAL.search(text)
    if action and (not final or action.start() < final.start()):
        wanted = action[1][: final.start() - action.start(1)] if final else action[1]
        return _move(text[: action.start()], action=_joined(wanted.strip()))
    if final:
        return _move(text[: final.start()], answer=final[1].strip() or None)
    return _move(text)


def _move(thought: str, action: str = "", answer: str | None = None) -> Move:
    return Move(thought=_THOUGHT.sub("", thought).strip(), action=action, answer=answer, messages=[])


def _joined(action: str) -> str:
    parts = _INPUT.match(action)
    return f"{parts[1].strip()}[{parts[2].strip()}]" if parts else action


async def take(environment: Environment, world: State, action: str) -> Transition:
    """Step an environment, which the log tells as a call of the tool `act`."""
    with telemetry.tool_call("act"):
        return await environment.step(world, action)


async def in_environment(
    environment: Environment, name: str, move: Move, world: dict[str, Any], reward: float | None = None
) -> Effect:
    """Do what a move wants in an environment; an answer becomes the action that gives it.

    `reward` is that of the world as it stands, which a refused action leaves as it is.
    """
    if calls := _calls(move):
        return await _act_calls(environment, move, world, calls, reward)
    action = move["action"] if move["answer"] is None else final_action(name, move["answer"]) or move["answer"]
    done = await take(environment, world, action)
    told: list[AnyMessage] = [*move["messages"], HumanMessage(done.observation)] if move["messages"] else []
    step = ActionStep(
        thought=move["thought"],
        action=action,
        observation=done.observation,
        valid=done.valid,
        messages=told,
    )
    reward = done.reward if done.valid else reward
    return Effect(step, done.state, reward, done.done, environment.answer(done.state) or None)


async def _act_calls(
    environment: Environment, move: Move, world: dict[str, Any], calls: list[Any], reward: float | None
) -> Effect:
    """Apply the calls of the tool `act` one after another: each may change what the next one meets."""
    replies: list[AnyMessage] = []
    done, valid = bool(world["done"]), True
    for call in calls:
        action = call["args"].get("action") if call["name"] == "act" and isinstance(call["args"], dict) else None
        if not isinstance(action, str):
            told, right = f"Call the tool act with an action as text. Legal actions: {environment.actions}", False
        else:
            world, told, gained, done, right = await take(environment, world, action)
            reward = gained if right else reward
        valid = valid and right
        status = "success" if right else "error"
        replies.append(ToolMessage(told, tool_call_id=call["id"], name=call["name"], status=status))
    step = ActionStep(
        thought=move["thought"],
        action=move["action"],
        observation="\n".join(reply.text for reply in replies),
        valid=valid,
        messages=[*move["messages"], *replies],
    )
    return Effect(step, world, reward, done, environment.answer(world) or None)


class Action(BaseModel):
    """Act in the task's environment."""

    action: str


def act_tool(environment: Environment) -> BaseTool:
    """The declaration of an environment as a tool."""

    def act(action: str) -> str:
        """Act in the task's environment."""
        raise AssertionError("declared for the model; the environment itself is stepped")

    return StructuredTool.from_function(
        act,
        name="act",
        args_schema=Action,
        description=f"Act in the task's environment. Legal actions: {environment.actions}",
    )


async def with_tools(step: Step[Any], move: Move, tools: list[BaseTool]) -> ActionStep:
    """Do what a move wants with tools: its own calls, or the one that its text names."""
    message = move["messages"][0] if move["messages"] else _as_call(move["action"], tools)
    assert isinstance(message, AIMessage)
    replies = await act(step, message, tools)
    return ActionStep(
        thought=move["thought"],
        action=move["action"],
        observation="\n".join(reply.text for reply in replies),
        valid=all(getattr(reply, "status", "") != "error" for reply in replies),
        messages=[message, *replies] if move["messages"] else [],
    )


def _as_call(action: str, tools: Sequence[BaseTool]) -> AIMessage:
    """An action written as text, `tool[input]`, as a native call. An input that is no JSON is the first argument."""
    named = _NAMED.match(action)
    name, given = named.groups() if named else (action.strip(), "")
    tool = next((tool for tool in tools if tool.name.casefold() == name.casefold()), None)
    try:
        args = json.loads(given)
    except ValueError:
        args, given = None, _to_bracket(given)
    if not isinstance(args, dict):
        fields = list(tool.args) if tool else ["input"]
        args = {fields[0]: given} if fields else {}
    return AIMessage("", tool_calls=[{"name": tool.name if tool else name, "args": args, "id": "text"}])


def _to_bracket(given: str) -> str:
    """An input up to the bracket that closes it, whatever the model said after that."""
    depth = 0
    for place, character in enumerate(given):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if depth < 0:
            return given[:place]
    return given


def _calls(move: Move) -> list[Any]:
    message = move["messages"][0] if move["messages"] else None
    if not isinstance(message, AIMessage):
        return []
    return [*message.tool_calls, *message.invalid_tool_calls]


def describe(tools: Sequence[BaseTool]) -> str:
    """Tools as actions in text: their names and arguments, from their own schemas."""
    lines = [f"{tool.name}[{', '.join(tool.args)}]: {tool.description.splitlines()[0]}" for tool in tools]
    return "\n".join([*lines, "Finish with 'Final Answer: ...' instead of an action."])
