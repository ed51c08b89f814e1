"""Acting: doing what an agent wants to do, in an environment or with tools."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel
from typing_extensions import TypedDict

from reflective_agents import telemetry
from reflective_agents.environments.base import Environment, State, Transition
from reflective_agents.models.toolless import ACT
from reflective_agents.nodes.acting.apart import run_apart
from reflective_agents.nodes.acting.react_text import ParsedStep, action_in, action_of, as_call
from reflective_agents.nodes.evidence.research import act
from reflective_agents.nodes.evidence.sources import (
    NO_SOURCES,
    Sources,
    observations_of_steps,
    with_numbers,
)
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import react as prompts
from reflective_agents.state.context import Context
from reflective_agents.state.tool_calls import every_call


class ActionStep(TypedDict):
    """One step that was taken, with what it brought. `valid` is False if the action was unreadable or refused."""

    thought: str
    action: str
    observation: str
    valid: bool
    messages: list[AnyMessage]


class Effect(NamedTuple):
    """What came of a move: the step, where the world stands now, the reward if it is decided, an answer, and whether it
    acted in the environment, and did not only call a tool."""

    step: ActionStep
    world: State
    reward: float | None = None
    done: bool = False
    answer: str | None = None
    acted: bool = True


async def take(environment: Environment, world: State, action: str) -> Transition:
    """Step an environment, which the log tells as a call of the tool `act`; a whole answer always has its reward. Once
    the task has ended, every action is refused."""
    if world.get("done") is True:  # an environment of the user's may hold anything else there
        return Transition(world, "The task has ended; no action is left.", done=True, valid=False)
    with telemetry.tool_call("act"):
        return environment.with_final_reward(await environment.step(world, action))


CallTool = Callable[[ToolCall | InvalidToolCall], Awaitable[ToolMessage | None]]
"""Calls a tool beside the environment; None if there is no such tool."""


def beside_environment(step: Step[Context], tools: list[BaseTool]) -> CallTool:
    """Return what calls the tools that an agent has beside its actions in an environment."""
    names = {tool.name for tool in tools}

    async def call(wanted: ToolCall | InvalidToolCall) -> ToolMessage | None:
        name = wanted["name"]
        args = wanted["args"]
        if name not in names or not isinstance(args, dict):
            return None
        tool_call = ToolCall(name=str(name), args=args, id=wanted["id"])
        [reply] = await act(step, AIMessage("", tool_calls=[tool_call]), tools)
        assert isinstance(reply, ToolMessage)
        return reply

    return call


async def act_in_environment(
    environment: Environment, move: ParsedStep, world: State, reward: float | None, call_tool: CallTool
) -> Effect:
    """Do what a move wants in an environment; an answer becomes the action that gives it.

    `reward` is that of the world as it stands, which a refused action, and a tool, leave as it is.
    """
    calls = _calls(move)
    if calls:
        return await _act_calls(environment, move, world, calls, reward, call_tool)
    answer = move["answer"]
    action = move["action"] if answer is None else action_of(answer, environment)
    done = await take(environment, world, action)
    replies: list[AnyMessage] = [HumanMessage(done.observation)] if move["messages"] else []
    step = _taken({**move, "action": action}, done.observation, done.valid, replies)
    reward = done.reward if done.valid else reward
    return Effect(step, done.state, reward, done.done, environment.answer(done.state) or None)


async def _act_calls(
    environment: Environment,
    move: ParsedStep,
    world: State,
    calls: list[ToolCall | InvalidToolCall],
    reward: float | None,
    call_tool: CallTool,
) -> Effect:
    """Apply the calls of the tool `act` one after another, and those of others between them: each may change what the
    next one meets."""
    replies: list[ToolMessage] = []
    done = bool(world["done"])
    acted = False
    for call in calls:
        reply = await call_tool(call)
        if reply is None:
            acted = True
            action = action_in(call)
            if action is None:
                text, accepted = prompts.NO_ACTION, False
            else:
                world, text, new_reward, done, accepted = await take(environment, world, action)
                reward = new_reward if accepted else reward
            status = "success" if accepted else "error"
            reply = ToolMessage(text, tool_call_id=call["id"], name=call["name"], status=status)
        replies.append(reply)
    valid = all(reply.status != "error" for reply in replies)
    step = _taken(move, "\n".join(reply.text for reply in replies), valid, replies)
    return Effect(step, world, reward, done, environment.answer(world) or None, acted)


def _taken(move: ParsedStep, observation: str, valid: bool, replies: Sequence[AnyMessage]) -> ActionStep:
    return ActionStep(
        thought=move["thought"],
        action=move["action"],
        observation=observation,
        valid=valid,
        messages=[*move["messages"], *replies],
    )


class Action(BaseModel):
    """Act in the task's environment."""

    action: str


def act_tool(environment: Environment) -> BaseTool:
    """Declare an environment as a tool."""

    def act(action: str) -> str:
        """Act in the task's environment."""
        raise AssertionError("declared for the model; the environment itself is stepped")

    return StructuredTool.from_function(
        act,
        name=ACT,
        args_schema=Action,
        description=f"Act in the task's environment. Legal actions: {environment.actions}",
    )


async def act_with_tools(
    step: Step[Context],
    move: ParsedStep,
    tools: list[BaseTool],
    steps: Sequence[ActionStep] = (),
    earlier: Sources = NO_SOURCES,
) -> ActionStep:
    """Do what a move wants with tools: its own calls, or the one that its text names. What was found in earlier `steps`
    is not found again, and the sources that `earlier` answers cite keep their numbers.

    To be called once by a node, whose state holds the move."""
    message = move["messages"][0] if move["messages"] else as_call(move["action"], tools)
    assert isinstance(message, AIMessage)
    replies = with_numbers(await act(step, message, tools, run_apart), observations_of_steps(steps), earlier)
    observation = "\n".join(reply.text for reply in replies)
    valid = all(getattr(reply, "status", "") != "error" for reply in replies)
    return _taken(move, observation, valid, replies if move["messages"] else [])


def _calls(move: ParsedStep) -> list[ToolCall | InvalidToolCall]:
    message = move["messages"][0] if move["messages"] else None
    return every_call(message) if isinstance(message, AIMessage) else []
