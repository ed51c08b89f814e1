"""An agent's view of its task: the world it acts in, its tools, and the prompt that holds its steps so far."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool

from environments.base import Environment, Task
from environments.registry import get_environment
from models.calls import estimate_tokens
from nodes.acting import ActionStep, act_tool, describe
from nodes.research import search_tools
from nodes.step import Step, Update
from prompts import react as prompts
from state.context import ActingContext, ReactContext
from tools.arithmetic import arithmetic_tools


async def environment_of(context: ActingContext) -> Environment | None:
    """The environment that the settings name; None for open questions."""
    if context.environment is None:
        return None
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


def tools_of(step: Step[ReactContext], run_id: str) -> list[BaseTool]:
    """What an agent may call where there is no environment: the search, the calculator, and what it was given."""
    calculator = [tool for tool in arithmetic_tools() if tool.name == "calculator"]
    return [*search_tools(step, run_id), *calculator, *step.context.tools]


def text_prompt(state: Mapping[str, Any], step: Step[Any], actions: str, closing: str = "") -> list[BaseMessage]:
    """The prompt of the text mode, with as many of the last steps as the context holds."""
    context: ReactContext = step.context

    def with_steps(first: int) -> list[BaseMessage]:
        return prompts.TEXT.format_messages(
            actions=actions,
            examples=prompts.EXAMPLES.get(context.environment or "", "") if context.examples else "",
            lessons=state["hints"],
            conversation=state["messages"][:-1],
            request=state["request"],
            scratchpad=scratchpad(state["steps"], first) + closing,
        )

    return _fitting(state, step, with_steps)


def tools_prompt(state: Mapping[str, Any], step: Step[Any], closing: str = "") -> list[BaseMessage]:
    """The prompt of the mode of native calls, with as many of the last steps as the context holds."""

    def with_steps(first: int) -> list[BaseMessage]:
        scratch: list[AnyMessage] = [HumanMessage(prompts.LEFT_OUT.format(last=first))] if first else []
        scratch += [message for taken in state["steps"][first:] for message in taken["messages"]]
        return prompts.TOOLS.format_messages(
            lessons=state["hints"],
            conversation=state["messages"][:-1],
            request=state["request"],
            scratch=[*scratch, *([HumanMessage(closing)] if closing else [])],
        )

    return _fitting(state, step, with_steps)


def _fitting(state: Mapping[str, Any], step: Step[Any], with_steps: Any) -> list[BaseMessage]:
    most, count = step.context.max_context_tokens, len(state["steps"])
    for first in range(count):
        prompt: list[BaseMessage] = with_steps(first)
        if estimate_tokens(prompt, {}) <= most:
            break
    else:
        first, prompt = count, with_steps(count)
    if first:
        step.emit("trimmed", steps=first, max_context_tokens=most)
    return prompt


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
