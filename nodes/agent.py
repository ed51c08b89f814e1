"""An agent's view of its task: the world it acts in, its tools, and the prompt that holds its steps so far."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from environments.base import Environment, Task, Transition
from environments.registry import final_action, get_environment
from models.calls import estimate_tokens
from nodes.acting import ActionStep, act_tool, describe, take
from nodes.research import search_tools
from nodes.step import Step, Update
from prompts import react as prompts
from state.context import ReactContext, TaskContext
from tools.arithmetic import arithmetic_tools


async def environment_of(context: TaskContext) -> Environment | None:
    """The environment that the settings name, or are given; None for open questions."""
    if not isinstance(context.environment, str):
        given: Environment | None = context.environment
        return given
    # Reading a docstore blocks, and would hold up every other run of the process.
    return await asyncio.to_thread(
        get_environment, context.environment, context.docstore, unsafe_code=context.unsafe_code
    )


async def enter(state: Mapping[str, Any], step: Step[Any]) -> Update:
    """Begin a task: the world before the first action, and what the agent is asked.

    A task given beside the messages is used once; without one the question itself is the task.
    """
    question = state["messages"][-1].text
    task: Task = cast(Task | None, state.get("task")) or {"id": "", "question": question}
    environment = await environment_of(step.context)
    world = environment.start(task) if environment else {}
    request = environment.public(world) if environment else f"Question: {question}"
    return {"world": world, "request": request, "hints": state.get("advice") or "", "task": None, "advice": None}


async def answered(
    environment: Environment | None, name: str | None, world: dict[str, Any], answer: str
) -> Transition | None:
    """What the environment says to an answer; None where there is no environment, or no single action gives the
    answer."""
    action = final_action(name, answer) if name else None
    if environment is None or action is None:
        return None
    return await take(environment, world, action)


def tools_of(step: Step[ReactContext], run_id: str) -> list[BaseTool]:
    """What an agent may call where there is no environment: the search, the calculator, and what it was given.

    A tool that was given takes the place of one of ours of the same name; a plain function becomes a tool.
    """
    if step.context.environment is not None:
        return []
    given = [tool if isinstance(tool, BaseTool) else as_tool(tool) for tool in step.context.tools]
    return list({tool.name: tool for tool in [*search_tools(step, run_id), calculator(), *given]}.values())


@cache
def calculator() -> BaseTool:
    """The calculator; making a tool takes longer than most steps."""
    return next(tool for tool in arithmetic_tools() if tool.name == "calculator")


def agent_prompt(
    state: Mapping[str, Any],
    step: Step[ReactContext],
    environment: Environment | None,
    tools: Sequence[BaseTool],
    *,
    closing: str = "",
    most: int | None = None,
) -> list[BaseMessage]:
    """The prompt of the next step in either mode, with as many of the last steps as the context holds.

    Args:
        state: The agent's state.
        step: The node that asks.
        environment: Where it acts, if anywhere.
        tools: What it may call.
        closing: What it is told after its steps.
        most: Longest prompt, in estimated tokens; `max_context_tokens` if that is less.
    """

    def as_text(first: int) -> list[BaseMessage]:
        return prompts.TEXT.format_messages(
            actions=actions_of(environment, tools),
            examples=prompts.EXAMPLES.get(step.context.environment_name, "") if step.context.examples else "",
            lessons=state["hints"],
            conversation=state["messages"][:-1],
            request=state["request"],
            scratchpad=scratchpad(state["steps"], first) + (f"\n{closing}" if closing else ""),
        )

    def as_calls(first: int) -> list[BaseMessage]:
        scratch: list[AnyMessage] = [HumanMessage(prompts.LEFT_OUT.format(last=first))] if first else []
        scratch += [message for taken in state["steps"][first:] for message in taken["messages"]]
        return prompts.TOOLS.format_messages(
            lessons=state["hints"],
            conversation=state["messages"][:-1],
            request=state["request"],
            scratch=[*scratch, *([HumanMessage(closing)] if closing else [])],
        )

    with_steps = as_text if step.context.mode == "text" else as_calls
    limit = step.context.max_context_tokens
    return _fitting(step, with_steps, len(state["steps"]), limit if most is None else min(most, limit))


def _fitting(
    step: Step[Any], with_steps: Callable[[int], list[BaseMessage]], count: int, most: int
) -> list[BaseMessage]:
    first, prompt = 0, with_steps(0)
    while first < count and estimate_tokens(prompt, {}) > most:
        first += 1
        prompt = with_steps(first)
    if first:
        step.emit("trimmed", steps=first, max_context_tokens=most)
    return prompt


def room_for_answer(step: Step[ReactContext], tools: Sequence[BaseTool]) -> int:
    """How long a prompt may be, in estimated tokens, that asks for the answer with all that the run may still
    spend."""
    declared = [convert_to_openai_tool(tool) for tool in tools] if step.context.mode == "tools" else []
    left = step.context.max_total_tokens - step.meter.usage["total_tokens"]
    return left - step.context.max_answer_tokens - estimate_tokens([], {"tools": declared})


def kept_for_answer(step: Step[ReactContext], prompt: Sequence[BaseMessage]) -> str | None:
    """The limit that leaves room for an answer, but not for an action before it; None while there is room for both."""
    context, spent = step.context, step.meter.usage["total_tokens"]
    if step.meter.calls_left <= 1:
        return f"max_model_calls={context.max_model_calls} reached, but for the call that is kept for the answer"
    needed = 2 * (estimate_tokens(prompt, {}) + context.max_answer_tokens)
    if spent + needed <= context.max_total_tokens:
        return None
    return (
        f"max_total_tokens={context.max_total_tokens} reached "
        f"(total_tokens={spent}, the next call may need {needed} together with the answer)"
    )


def scratchpad(steps: Sequence[ActionStep], first: int = 0) -> str:
    """The steps as the text mode shows them; those before `first` are left out, which it says."""
    lines = [prompts.LEFT_OUT.format(last=first)] if first else []
    for number, taken in enumerate(steps[first:], first + 1):
        lines += [f"Thought {number}: {taken['thought']}", f"Action {number}: {taken['action']}"]
        lines += [f"Observation {number}: {taken['observation']}"]
    return "\n".join([*lines, f"Thought {len(steps) + 1}:"])


def actions_of(environment: Environment | None, tools: Sequence[BaseTool]) -> str:
    """What the agent may do, for the text mode."""
    return environment.actions if environment else describe(tools)


def callable_tools(environment: Environment | None, tools: Sequence[BaseTool]) -> list[BaseTool]:
    """What the agent may do, for the mode of native calls."""
    return [act_tool(environment)] if environment else list(tools)
