"""Steps that a model writes as text: which tools it is shown, and what it wants to do with them."""

from collections.abc import Callable, Collection, Sequence

from langchain_core.messages import AIMessage, AnyMessage, InvalidToolCall, ToolCall
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import TypedDict

from reflective_agents.environments.base import Environment
from reflective_agents.state.tool_calls import every_call
from reflective_agents.text.actions import Declared, declared, read_answer, read_call, read_step
from reflective_agents.text.labels import sections, without_label


class ParsedStep(TypedDict):
    """What an agent wants to do next: an action or an answer, or neither if that could not be read.

    `messages` holds its message, unless it was written on paper (`acting="paper"`).
    """

    thought: str
    action: str
    answer: str | None
    messages: list[AnyMessage]


def parse_step(text: str, names: Collection[str] = (), environment: Environment | None = None) -> ParsedStep:
    """Read a step written as text, as `text.actions.read_step`; in an environment also an action without its label."""
    is_action: Callable[[str], bool] | None = environment.is_action if environment else None
    thought, action, answer = read_step(text, names, is_action)
    return ParsedStep(thought=thought, action=action, answer=answer, messages=[])


def parsed_call(reply: AIMessage, environment: Environment | None = None) -> ParsedStep:
    """Return what a reply with calls of tools wants to do. One without any answers, but for actions of an environment
    that it writes instead."""
    if calls := every_call(reply):
        action = ", ".join(map(call_text, calls))
        return ParsedStep(thought=reply.text, action=action, answer=None, messages=[reply])
    if environment:
        written = parse_step(reply.text, environment=environment)
        if written["action"] or written["answer"]:
            return {**written, "messages": [reply]}
    return ParsedStep(thought="", action="", answer=reply.text, messages=[reply])


def call_text(call: ToolCall | InvalidToolCall) -> str:
    """Return a call of a tool in words; in an environment that is the action itself."""
    action = action_in(call)
    return f"{call['name']}({call['args']})" if action is None else action


def action_in(call: ToolCall | InvalidToolCall) -> str | None:
    """Return the action of an environment that a call holds, without a label; None if it holds none."""
    args = call["args"]
    action = args.get("action") if call["name"] == "act" and isinstance(args, dict) else None
    return without_label(action, "action") if isinstance(action, str) else None


def as_call(action: str, tools: Sequence[BaseTool]) -> AIMessage:
    """Convert an action written as text into a native call."""
    name, args = read_call(action, [_declared(tool) for tool in tools])
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "text"}])


def describe_tools(tools: Sequence[BaseTool]) -> str:
    """Describe tools as actions in text: their signatures from their own schemas, and what they do."""
    lines = [_declared(tool).line() for tool in tools]
    return "\n".join([*lines, "Finish with 'Final Answer: ...' instead of an action."])


def _declared(tool: BaseTool) -> Declared:
    return declared(convert_to_openai_tool(tool))


def parse_answer(text: str, environment: Environment | None) -> str | None:
    """Read the answer of an agent that was asked for its best one; None if it wants to go on acting instead."""
    if answer := read_answer(text):
        return in_short(answer, environment) if environment else answer
    *_, last_step = sections(text, ("action",))
    step = parse_step(text[last_step.start :])
    last = step["answer"] or step["action"] or step["thought"]
    answer = environment.find_answer(last) if environment else last
    gives_it = environment is not None and environment.final_action(answer) == answer
    wants_to_act = step["action"] and answer == last and not gives_it
    return None if wants_to_act else answer or None


def held_answer(thoughts: Sequence[str]) -> str | None:
    """Return the last answer that a thought has held, if any did."""
    for thought in reversed(thoughts):
        answer = parse_step(thought)["answer"]
        if answer:
            return answer
    return None


def action_of(answer: str, environment: Environment) -> str:
    """Return the action that gives an answer; the answer itself where none does, or it is empty."""
    short = in_short(answer, environment)
    return (environment.final_action(short) if short else None) or short


def in_short(answer: str, environment: Environment) -> str:
    """Return what an environment takes of an answer that may have a label, and go on after its first line: all of it
    where answers are whole texts."""
    if environment.find_answer(answer) == answer.strip():
        return answer
    unlabelled = read_answer(answer) or answer
    return environment.find_answer(f"Answer: {unlabelled}") or answer
