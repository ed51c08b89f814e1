"""An agent's view of its task: the world it acts in, its tools, and the prompt that holds its steps so far."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache, partial
from typing import TypeVar

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from reflective_agents.environments.base import Environment, State, Transition, task_of
from reflective_agents.environments.cleaned import cleaned
from reflective_agents.models.context_window import longest_estimated, make_way
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.models.toolless import ACT
from reflective_agents.nodes.acting.actions import ActionStep, act_tool, take
from reflective_agents.nodes.acting.client_tools import client_tools
from reflective_agents.nodes.acting.react_text import describe_tools
from reflective_agents.nodes.asking.chat import affordable_tokens, model_of, price_of_call
from reflective_agents.nodes.asking.task_prompt import examples_text, task_prompt
from reflective_agents.nodes.evidence.research import as_tools, search_tools, today
from reflective_agents.nodes.step import Step, Update
from reflective_agents.prompts import react as prompts
from reflective_agents.prompts import task as task_prompts
from reflective_agents.state.errors import Misuse, TooLong
from reflective_agents.state.families import TaskContext
from reflective_agents.state.limits import NANO, Limit
from reflective_agents.state.outcome import UNCHECKED, Appraisal
from reflective_agents.state.run import Input
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.state.trial import ActingState
from reflective_agents.tools.arithmetic import arithmetic_tools

T = TypeVar("T")


class Acting(Input):
    """What the prompt of an agent shows of its state."""

    request: str
    hints: str
    steps: list[ActionStep]


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


def agent_prompt(
    state: Acting,
    step: Step[ReactContext],
    environment: Environment | None,
    tools: Sequence[BaseTool],
    *,
    closing: str = "",
    most: int | None = None,
) -> list[BaseMessage]:
    """Build the prompt of the next step, as calls or on paper, with as many of the last steps as the context holds.

    Args:
        state: The agent's state.
        step: The node that asks.
        environment: Where it acts, if anywhere.
        tools: What it may call.
        closing: What it is told after its steps.
        most: Longest prompt, in estimated tokens; `max_context_tokens`, or what is known of the model, if that is less.
    """
    seen = with_repetitions_marked(state["steps"], environment)
    with_steps_from = _prompt_as_text if step.context.acting == "paper" else _prompt_as_calls
    build = partial(with_steps_from, state, step, environment, tools, seen, closing)
    held = step.context.max_context_tokens
    known = longest_estimated(model_of(step, step.context.model), step.meter)
    if known is not None:
        held = min(held, known)
    longest = held if most is None else min(held, most)
    first = 0
    prompt = build(first)
    # The conversation is compacted before steps are left out, which the agent would take again.
    make_way(prompt, held, step.meter)
    while first < len(state["steps"]) and estimate_tokens(prompt, {}) > longest:
        first += 1
        prompt = build(first)
    if first:
        step.emit("trimmed", steps=first, max_context_tokens=longest)
    return prompt


def _prompt_as_text(
    state: Acting,
    step: Step[ReactContext],
    environment: Environment | None,
    tools: Sequence[BaseTool],
    seen: Sequence[ActionStep],
    closing: str,
    first: int,
) -> list[BaseMessage]:
    """Build the prompt on paper, with the steps from `first` on."""
    scratch = scratchpad(seen, first)
    if closing:
        scratch += f"\n{closing}"
    return prompts.TEXT.format_messages(
        task=task_text(environment, tools, step),
        situation=situation(tools),
        lessons=state["hints"],
        conversation=state["messages"][:-1],
        request=state["request"],
        scratchpad=scratch,
    )


def _prompt_as_calls(
    state: Acting,
    step: Step[ReactContext],
    environment: Environment | None,
    tools: Sequence[BaseTool],
    seen: Sequence[ActionStep],
    closing: str,
    first: int,
) -> list[BaseMessage]:
    """Build the prompt as a conversation with calls of tools, with the steps from `first` on."""
    scratch: list[AnyMessage] = [HumanMessage(prompts.LEFT_OUT.format(last=first))] if first else []
    for taken in seen[first:]:
        scratch += taken["messages"]
    if closing:
        scratch.append(HumanMessage(closing))
    parts = {
        "lessons": state["hints"],
        "conversation": state["messages"][:-1],
        "request": state["request"],
        "scratch": scratch,
    }
    if environment is None:
        task = examples_text(step.context.few_shot)
        return prompts.TOOLS.format_messages(task=task, situation=situation(tools), **parts)
    task = task_prompt(environment, examples=step.context.few_shot, request=state["request"])
    names = ", ".join(tool.name for tool in tools)
    beside = prompts.BESIDE_ACTIONS.format(tools=names) if tools else ""
    return prompts.ACTIONS.format_messages(task=task, beside=beside, **parts)


async def with_fewer_steps(
    prompt: Callable[[int | None], list[BaseMessage]], send: Callable[[list[BaseMessage]], Awaitable[T]]
) -> T:
    """Send a prompt; as long as the model's context does not hold it, send it with fewer steps.

    Args:
        prompt: Builds the prompt, no longer than so many estimated tokens.
        send: Sends it.

    Raises:
        TooLong: if there is no step that could be left out.
    """
    sent = prompt(None)
    while True:
        try:
            return await send(sent)
        except TooLong:
            length = estimate_tokens(sent, {})
            sent = prompt(length * 3 // 4)
            if estimate_tokens(sent, {}) >= length:
                raise


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


def repetitions(steps: Sequence[ActionStep], environment: Environment | None = None) -> list[bool]:
    """Tell of each step whether the same action has brought the same before, in an environment in whatever words."""
    known = set[tuple[str, str]]()
    repeated: list[bool] = []
    for taken in steps:
        action = environment.canonical(taken["action"]) if environment else taken["action"]
        brought = (action, "".join(taken["observation"].split()))
        repeated.append(brought in known)
        known.add(brought)
    return repeated


def with_repetitions_marked(steps: Sequence[ActionStep], environment: Environment | None = None) -> list[ActionStep]:
    """Return the steps as the agent sees them: one that brings what is there already says so. On paper, where steps
    have no messages, nothing is added to what the papers show."""
    marked = []
    for taken, is_repeated in zip(steps, repetitions(steps, environment), strict=True):
        says_so = is_repeated and taken["messages"] and taken["valid"]
        marked.append(_known(taken) if says_so else taken)
    return marked


def _known(taken: ActionStep) -> ActionStep:
    """Mark a step as known, at the end of what it has brought."""
    *before, last = taken["messages"]
    content = last.content
    known = f"{content}\n{prompts.KNOWN}" if isinstance(content, str) else [*content, prompts.KNOWN]
    return {**taken, "messages": [*before, last.model_copy(update={"content": known})]}


def scratchpad(steps: Sequence[ActionStep], first: int = 0) -> str:
    """Show the steps as the papers do; a line says which steps before `first` are left out."""
    lines = [prompts.LEFT_OUT.format(last=first)] if first else []
    for number, taken in enumerate(steps[first:], first + 1):
        lines.append(f"Thought {number}: {taken['thought']}")
        lines.append(f"Action {number}: {taken['action']}")
        lines.append(f"Observation {number}: {taken['observation']}")
    lines.append(f"Thought {len(steps) + 1}:")
    return "\n".join(lines)


def task_text(environment: Environment | None, tools: Sequence[BaseTool], step: Step[ReactContext]) -> str:
    """Describe the task and what the agent may do, on paper."""
    if environment is not None:
        return task_prompt(environment, examples=step.context.few_shot)
    actions = task_prompts.ACTIONS.format(actions=describe_tools(tools))
    return f"{actions}\n\n{examples_text(step.context.few_shot)}"


def situation(tools: Sequence[BaseTool]) -> str:
    """Tell an agent the date, and if it can search how it cites."""
    searches = any(tool.name == "search" for tool in tools)
    return (prompts.SEARCHING if searches else prompts.ALONE).format(today=today())


def callable_tools(environment: Environment | None, tools: Sequence[BaseTool]) -> list[BaseTool]:
    """Return the tools that the agent may call."""
    return [act_tool(environment), *tools] if environment else list(tools)
