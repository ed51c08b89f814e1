"""Tools for models that take none: shown as text, called as text, and read back as native calls."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.actions import declared, read_call, read_step
from reflective_agents.text.structure import read_calls

_HOW = (
    "You may use these tools:\n{tools}\nTo use one, write a line such as 'Action: {name}[...]' and nothing after it; "
    "an Observation will follow. When you know the answer, write 'Final Answer: ...' instead."
)


def tools_as_text(messages: Sequence[BaseMessage], tools: Sequence[JsonObject]) -> list[BaseMessage]:
    """Rewrite a prompt so that its tools and calls are text."""
    as_text = [_in_words(message) for message in messages]
    if not tools:
        return as_text
    shown = [declared(tool) for tool in tools]
    how = _HOW.format(tools="\n".join(tool.line() for tool in shown), name=shown[0].name)
    if as_text and isinstance(as_text[0], SystemMessage):
        return [SystemMessage(f"{as_text[0].text}\n\n{how}"), *as_text[1:]]
    return [SystemMessage(how), *as_text]


def _in_words(message: BaseMessage) -> BaseMessage:
    if isinstance(message, ToolMessage):
        return HumanMessage(f"Observation: {message.text}")
    if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
        calls = [
            f"Action: {call['name']}[{call['args']}]" for call in (*message.tool_calls, *message.invalid_tool_calls)
        ]
        return AIMessage("\n".join([*([message.text] if message.text else []), *calls]))
    return message


def read_written_calls(reply: AIMessage, tools: Sequence[JsonObject], *, labelled: bool) -> AIMessage:
    """Replace the calls that a reply wrote as text by native calls.

    Args:
        reply: What the model said.
        tools: What it may call, in OpenAI's form.
        labelled: Whether it was asked to write actions; an answer then stands after its label.
    """
    if reply.tool_calls or reply.invalid_tool_calls or not tools:
        return reply
    shown = [declared(tool) for tool in tools]
    names = [tool.name for tool in shown]
    calls = read_calls(reply.text, names)
    step = read_step(reply.text, names)
    thought = "" if calls else step.thought
    if not calls and step.action:
        calls = [read_call(step.action, shown)]
    if calls:
        made = [{"name": name, "args": args, "id": f"written_{i}"} for i, (name, args) in enumerate(calls, 1)]
        return reply.model_copy(update={"content": thought, "tool_calls": made})
    if labelled and step.answer:
        return reply.model_copy(update={"content": step.answer})
    return reply
