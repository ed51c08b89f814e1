"""The prompt of an agent, which holds its task and its steps so far."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool

from reflective_agents.environments.base import Environment
from reflective_agents.models.context_window import longest_estimated, make_way
from reflective_agents.models.costs import estimate_tokens
from reflective_agents.nodes.acting.actions import ActionStep
from reflective_agents.nodes.acting.react_text import describe_tools
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.task_prompt import examples_text, task_prompt
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import react as prompts
from reflective_agents.prompts import task as task_prompts
from reflective_agents.state.errors import TooLong
from reflective_agents.state.run import Input
from reflective_agents.state.settings.react import ReactContext

T = TypeVar("T")


class Acting(Input):
    """What the prompt of an agent shows of its state."""

    request: str
    hints: str
    steps: list[ActionStep]


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
    parts = _Parts(state, step, environment, tools, seen, closing)
    build = parts.as_text if step.context.acting == "paper" else parts.as_calls
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


@dataclass(frozen=True)
class _Parts:
    """What the prompt of a step is made of, on paper or as calls."""

    state: Acting
    step: Step[ReactContext]
    environment: Environment | None
    tools: Sequence[BaseTool]
    seen: Sequence[ActionStep]
    closing: str

    def as_text(self, first: int) -> list[BaseMessage]:
        """Build the prompt on paper, with the steps from `first` on."""
        scratch = scratchpad(self.seen, first)
        if self.closing:
            scratch += f"\n{self.closing}"
        return prompts.TEXT.format_messages(
            task=task_text(self.environment, self.tools, self.step),
            situation=situation(self.tools),
            lessons=self.state["hints"],
            conversation=self.state["messages"][:-1],
            request=self.state["request"],
            scratchpad=scratch,
        )

    def as_calls(self, first: int) -> list[BaseMessage]:
        """Build the prompt as a conversation with calls of tools, with the steps from `first` on."""
        scratch: list[AnyMessage] = [HumanMessage(prompts.LEFT_OUT.format(last=first))] if first else []
        for taken in self.seen[first:]:
            scratch += taken["messages"]
        if self.closing:
            scratch.append(HumanMessage(self.closing))
        parts = {
            "lessons": self.state["hints"],
            "conversation": self.state["messages"][:-1],
            "request": self.state["request"],
            "scratch": scratch,
        }
        if self.environment is None:
            task = examples_text(self.step.context.few_shot)
            return prompts.TOOLS.format_messages(task=task, situation=situation(self.tools), **parts)
        task = task_prompt(self.environment, examples=self.step.context.few_shot, request=self.state["request"])
        names = ", ".join(tool.name for tool in self.tools)
        beside = prompts.BESIDE_ACTIONS.format(tools=names) if self.tools else ""
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
