"""An agent's view of its task: the world it acts in, its tools, and the prompt that holds its steps so far."""

import asyncio
from collections.abc import Sequence
from functools import cache

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from reflective_agents.environments.base import Environment, State, Transition, task_of
from reflective_agents.environments.cleaned import cleaned
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.models.toolless import ACT
from reflective_agents.nodes.acting.actions import act_tool, take
from reflective_agents.nodes.acting.client_tools import client_tools
from reflective_agents.nodes.asking.chat import affordable_tokens, price_of_call
from reflective_agents.nodes.evidence.research import as_tools, search_tools
from reflective_agents.nodes.step import Step, Update
from reflective_agents.state.errors import Misuse
from reflective_agents.state.families import TaskContext
from reflective_agents.state.limits import NANO, Limit
from reflective_agents.state.outcome import UNCHECKED, Appraisal
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.trial import ActingState
from reflective_agents.tools.arithmetic import arithmetic_tools


async def environment_of(context: TaskContext) -> Environment | None:
    """Return the environment that the settings name or hold; None for open questions."""
    if not isinstance(context.environment, str):
        return None if context.environment is None else cleaned(context.environment)
    # Reading a docstore blocks, and would hold up every other run of the process.
    return await asyncio.to_thread(_named_environment, context.environment, context)


def _named_environment(name: str, context: TaskContext) -> Environment:
    from reflective_agents.environments.registry import get_environment  # here, since open questions need none

    return get_environment(name, context.docstore, unsafe_code=context.unsafe_code)


async def enter(state: ActingState, step: Step[TaskContext]) -> Update:
    """Begin a task: the world before the first action, and what the agent is asked.

    A task given beside the messages is used once; without one the question itself is the task.
    """
    question = state["messages"][-1].text
    task = task_of(state.get("task"), question)
    environment = await environment_of(step.context)
    world = environment.start(task) if environment else {}
    request = environment.public(world) if environment else f"Question: {question}"
    return {"world": world, "request": request, "hints": state.get("advice") or "", "task": None, "advice": None}


async def give_answer(environment: Environment | None, world: State, answer: str) -> Transition | None:
    """Return the environment's transition for an answer.

    Returns None where there is no environment, or where no single action gives the answer.
    """
    if environment is None:
        return None
    action = environment.final_action(answer)
    return None if action is None else await take(environment, world, action)


def appraise(environment: Environment | None, answer: str, reward: float | None) -> Appraisal:
    """Return what an environment says of an answer by its reward (0..1); where there is none, whether it is a label."""
    if environment is None:
        return UNCHECKED
    if reward is None:
        return Appraisal(answered=True) if environment.is_label(answer) else UNCHECKED
    return Appraisal(environment.verifier, reward >= 1, f"the answer has a reward of {reward:g}")


def tools_of(step: Step[ReactContext], run_id: str) -> list[BaseTool]:
    """Return the tools of an agent: web search, those given, the caller's, the calculator; beside the actions of an
    environment those given alone.

    A tool that was given takes the place of one of ours of the same name; a plain function becomes a tool.

    Raises:
        Misuse: if one has the name of the tool that acts in an environment.
    """
    if step.context.environment is not None:
        given = as_tools(step.context.tools)
        if any(tool.name == ACT for tool in given):
            raise Misuse(f"the tool {ACT} acts in the environment: give yours another name")
        return given
    theirs = [*as_tools(step.context.tools), *client_tools(step.context.client_tools)]
    calculates = not theirs if step.context.calculator is None else step.context.calculator
    ours = [*search_tools(step, run_id)]
    if calculates:
        ours.append(calculator())
    by_name = {tool.name: tool for tool in [*ours, *theirs]}
    return list(by_name.values())


@cache
def calculator() -> BaseTool:
    """Return the calculator, cached: making a tool takes longer than most steps."""
    by_name = {tool.name: tool for tool in arithmetic_tools()}
    return by_name["calculator"]


def longest_answer_prompt(step: Step[ReactContext], tools: Sequence[BaseTool]) -> int:
    """Return the longest prompt, in estimated tokens, that leaves the run enough for an answer."""
    declared = [] if step.context.acting == "paper" else list(map(convert_to_openai_tool, tools))
    left = min(step.context.max_total_tokens - step.meter.usage["total_tokens"], affordable_tokens(step))
    return left - step.context.max_answer_tokens - estimate_tokens([], {"tools": declared})


def answer_reserve(step: Step[ReactContext], prompt: Sequence[BaseMessage]) -> Limit | None:
    """Return the limit that allows an answer but not another action before it; None if it allows both."""
    if step.meter.calls_left <= 1:
        return step.meter.limit("max_model_calls", next_cost=2)
    needed = estimate_tokens(prompt, {}) + step.context.max_answer_tokens
    # The next action, and the answer after it, whose prompt is about as long.
    if step.meter.usage["total_tokens"] + 2 * needed > step.context.max_total_tokens:
        return step.meter.limit("max_total_tokens", 2 * needed)
    if step.meter.nano_left is not None:
        price = 2 * price_of_call(step, needed)
        if price > step.meter.nano_left:
            return step.meter.limit("max_cost", price / NANO)
    return None


def affordable_samples(step: Step[ReactContext], prompt: Sequence[BaseMessage]) -> int:
    """Return how many samples of the next step the limits hold beside what is kept for an answer; one at least."""
    context = step.context
    needed = estimate_tokens(prompt, {}) + context.max_answer_tokens
    tokens_left = context.max_total_tokens - step.meter.usage["total_tokens"]
    calls = min(step.meter.calls_left, tokens_left // needed)
    if step.meter.nano_left is not None:
        price = price_of_call(step, needed)
        if price:
            calls = min(calls, step.meter.nano_left // price)
    return max(min(context.step_samples, calls - context.answer_at_limit), 1)


def callable_tools(environment: Environment | None, tools: Sequence[BaseTool]) -> list[BaseTool]:
    """Return the tools that the agent may call."""
    return [act_tool(environment), *tools] if environment else list(tools)
