"""Tools for models that take none: shown in words, called as a JSON object or as text, and read back as native calls.

The tools stand in the system message, and calls and results are turns of the conversation, so that each prompt begins
with all of the one before it.
"""

import json
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from reflective_agents.models.capabilities import Way
from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.actions import (
    Declared,
    arguments_of,
    declared,
    name_and_input,
    read_answer,
    read_call,
    read_step,
)
from reflective_agents.text.labels import NAMES, bare, sections, without_label
from reflective_agents.text.structure import Json, read_calls, read_object

STEP, ANSWER = "Step", "answer"
ACT = "act"
"""The tool that acts in an environment: it takes the place of all others, and its actions need not name it."""
_GUESS = "guess"
"""Where a message keeps the answer that its model wrote behind its action."""
_ACTS = "In each message take one action of the task; the tool act itself need not be named. "
_TOOLS = "You may use these tools:\n{tools}\nTo use one, "
_BY_SCHEMA = {
    True: _ACTS + 'Write a JSON object: "thought", what you know and what you still need, briefly; and "action", or '
    '"answer" as soon as you know it.',
    False: _TOOLS + 'write a JSON object: "thought", what you know and what you need, briefly; "action", the tool\'s '
    'name; "input", what stands in its brackets. When you know the answer, the action is "{ending}", and the input is '
    "the whole answer.",
}
_BY_TEXT = {
    True: _ACTS + "Write a line 'Thought: ...', what you know and what you need, briefly; and then a line "
    "'Action: ...' with the action, and nothing after it; an Observation will follow.",
    False: _TOOLS + "write a line such as 'Action: {name}[...]' and nothing after it; an Observation will follow. When "
    "you know the answer, write 'Final Answer: ...' instead.",
}
_WORKED_OUT = "which works out what is still missing, and"
_ENDS = {
    "schema": f'No tool can be called now: write a JSON object with "thought", {_WORKED_OUT} "answer".',
    "text": f"No tool can be called now: write 'Thought: ...', {_WORKED_OUT} 'Final Answer: ...'.",
}
_NEXT = "Take the next action, or give the answer if nothing is missing."
"""Follows each result in an environment: without it, small models work on when they have the answer; asked whether the
result is the answer, they give the first one."""
_UNREADABLE = "there is no action in it that could be read"


def tools_in_words(
    messages: Sequence[BaseMessage], tools: Sequence[JsonObject], way: Way, *, ends: bool = False
) -> list[BaseMessage]:
    """Rewrite a prompt so that its tools, calls and results are words.

    Args:
        messages: The prompt.
        tools: The tools, in OpenAI's form; none if only calls and results are to be rewritten.
        way: How tools are called.
        ends: Whether none may be called any more.
    """
    shown = [declared(tool) for tool in tools]
    results = [message for message in messages if isinstance(message, ToolMessage)]
    last_result = results[-1] if ends and results else None  # what follows it asks for the answer already
    words = [_in_words(message, shown, way, asks=message is not last_result) for message in messages]
    if not shown:
        return _joined(words)
    how = (_BY_SCHEMA if way == "schema" else _BY_TEXT)[_is_world(shown)]
    lines = "\n".join(tool.line() for tool in shown)
    instructions = how.format(tools=lines, name=shown[0].name, ending=_ending(shown))
    first = [words.pop(0).text] if words and isinstance(words[0], SystemMessage) else []
    last = [HumanMessage(_ENDS[way])] if ends else []
    return _joined([SystemMessage("\n\n".join([*first, instructions])), *words, *last])


def _is_world(tools: Sequence[Declared]) -> bool:
    """Tell whether the only tool acts in an environment: then an action need not be named."""
    return len(tools) == 1 and tools[0].name == ACT and [*tools[0].required] == [*tools[0].fields] == ["action"]


def _ending(tools: Sequence[Declared]) -> str:
    """Return what the action is called that gives the answer: no tool has this name."""
    return "final answer" if any(tool.name == ANSWER for tool in tools) else ANSWER


def _ends(action: str, tools: Sequence[Declared]) -> bool:
    """Tell whether an action gives the answer, however it is called: "Final Answer", "final_answer", "Finish"."""
    # A tool of the user's may be called "answer" or "finish".
    is_tool = any(tool.name.casefold() == action.casefold() for tool in tools)
    return not is_tool and action.casefold().replace("_", " ") in (*NAMES["final"], *NAMES["answer"], "finish")


def _joined(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Join what the user says in a row: many chat templates demand turns."""
    joined: list[BaseMessage] = []
    for message in messages:
        if joined and _is_users_text(joined[-1]) and _is_users_text(message):
            joined[-1] = HumanMessage(f"{joined[-1].content}\n\n{message.content}")
        else:
            joined.append(message)
    return joined


def _is_users_text(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and isinstance(message.content, str)


def _in_words(message: BaseMessage, tools: Sequence[Declared], way: Way, *, asks: bool) -> BaseMessage:
    if isinstance(message, ToolMessage):
        following = f"\n{_NEXT}" if asks and _is_world(tools) and message.status != "error" else ""
        return HumanMessage(f"Observation: {message.text}{following}")
    if not isinstance(message, AIMessage) or not (message.tool_calls or message.invalid_tool_calls):
        return message
    if not message.tool_calls:  # what could not be read stands as it was written
        written = [call["args"] or "" for call in message.invalid_tool_calls]
        return AIMessage("\n".join([message.text, *written]).strip())
    write = _as_object if way == "schema" else _as_line
    first, *others = message.tool_calls
    steps = [write(message.text, first, tools)]
    steps += [write("", call, tools) for call in others]
    return AIMessage("\n".join(steps))


def _as_line(thought: str, call: ToolCall, tools: Sequence[Declared]) -> str:
    action = _input(call) if _is_world(tools) else f"{call['name']}[{_input(call)}]"
    return f"Thought: {thought}\nAction: {action}" if thought else f"Action: {action}"


def _as_object(thought: str, call: ToolCall, tools: Sequence[Declared]) -> str:
    action = {"action": _input(call)} if _is_world(tools) else {"action": call["name"], "input": _input(call)}
    return json.dumps({"thought": thought, **action}, ensure_ascii=False)


def _input(call: ToolCall) -> str:
    """Return the arguments of a call as they stand in its brackets: a single text as it is, else JSON."""
    texts = [value for value in call["args"].values() if isinstance(value, str)]
    return texts[0] if len(texts) == len(call["args"]) == 1 else json.dumps(call["args"], ensure_ascii=False)


def step_format(tools: Sequence[JsonObject], *, ends: bool = False) -> JsonObject:
    """Return the response format that holds a model to one step, or to an answer if it `ends`."""
    shown = [declared(tool) for tool in tools]
    text: JsonObject = {"type": "string"}
    action = {"enum": [*(tool.name for tool in shown), _ending(shown)]}
    schema = _form(action=action, input=text)
    if ends or _is_world(shown):
        schema = _form(answer=text)
    if not ends and _is_world(shown):
        schema = {"anyOf": [_form(action=text), schema]}
    return {"type": "json_schema", "json_schema": {"name": STEP, "schema": schema, "strict": True}}


def _form(**fields: JsonObject) -> JsonObject:
    """Return the schema of a thought, and of what follows it."""
    properties: JsonObject = {"thought": {"type": "string"}, **fields}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def read_step_object(reply: AIMessage, tools: Sequence[JsonObject], *, ends: bool = False) -> AIMessage:
    """Replace the step that a reply wrote as a JSON object by a native call, or by the answer it gives."""
    if reply.tool_calls or reply.invalid_tool_calls:
        return reply
    shown = [declared(tool) for tool in tools]
    is_world = _is_world(shown)
    step = read_object(reply.text, ("thought", "action", ANSWER), STEP)
    if step is None:
        return answer_alone(reply) if ends else read_written_calls(reply, tools, labelled=True)
    thought = _as_text(step.get("thought"))
    action = without_label(_as_text(step.get("action")), "action")
    answer = _as_text(step.get(ANSWER))
    given = _as_text(step.get("input", step.get("action_input")))
    # In an environment "answer" without an input may well be one of its actions.
    gives_answer = _ends(action, shown) and (given != "" or not is_world)
    if answer or gives_answer:
        return _answering(reply, _final(answer or given or thought), acts=is_world and not ends)
    if ends:  # a server that does not hold its model to the form: what is no answer has to be told from one
        wanted = f"{action}[{given}]" if given else action
        return reply.model_copy(update={"content": f"Action: {wanted}" if wanted else thought})
    if not action:
        return _unreadable(reply, shown)
    is_tool = any(tool.name.casefold() == action.casefold() for tool in shown)
    if is_tool and not is_world:
        call = arguments_of(action, given, shown)
    else:
        call = read_call(f"{action}[{given}]" if given else action, shown)
    return _calling(reply, thought, [call])


def _final(answer: str) -> str:
    """Return an answer without the label that a model writes in the field for it, too, and what stands before that."""
    *_, last = sections(answer, ("final",))
    return bare(answer[last.begin :]) if last.name else answer


def _as_text(value: Json) -> str:
    """Return a field as text: a server that does not hold its model to the form passes anything on."""
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_written_calls(reply: AIMessage, tools: Sequence[JsonObject], *, labelled: bool) -> AIMessage:
    """Replace the calls that a reply wrote as text by native calls.

    Args:
        reply: What the model said.
        tools: What it may call, in OpenAI's form.
        labelled: Whether it was asked to write actions; an answer then stands after its label, and in an environment
            nothing else is an answer.
    """
    if reply.tool_calls or reply.invalid_tool_calls or not tools:
        return reply
    shown = [declared(tool) for tool in tools]
    names = [tool.name for tool in shown]
    calls = read_calls(reply.text, names)
    step = read_step(reply.text, names)
    thought = "" if calls else step.thought
    if not calls and step.action:
        name, given = name_and_input(step.action, [tool.name.casefold() for tool in shown])
        # "Finish[42]" where no tool is called so; in an environment it may be an action.
        if given and _ends(name, shown) and not _is_world(shown):
            return _answering(reply, given)
        calls = [read_call(step.action, shown)]
    if calls:
        # Not taken for the answer, which was written before the result; but better than none if the run ends here.
        answer = read_answer(reply.text)
        guess = {_GUESS: answer} if answer else {}
        return _calling(reply.model_copy(update={"additional_kwargs": reply.additional_kwargs | guess}), thought, calls)
    if labelled and step.answer:
        return _answering(reply, step.answer, acts=_is_world(shown))
    # As an invalid call, to which the agent replies with what is wrong, as to a native one.
    return _unreadable(reply, shown) if labelled and _is_world(shown) else reply


def guess_in(reply: AIMessage) -> str:
    """Return the answer that a model wrote behind its action, before it could know the result; empty if it did not."""
    return str(reply.additional_kwargs.get(_GUESS, ""))


def answer_alone(reply: AIMessage) -> AIMessage:
    """Return a reply that ends with an answer as that answer, whatever steps it has invented before."""
    step = read_step(reply.text)
    answer = read_answer(reply.text) if step.action else step.answer
    return reply.model_copy(update={"content": answer}) if answer else reply


def _answering(reply: AIMessage, answer: str, *, acts: bool = False) -> AIMessage:
    """Return a reply that answers. Where the agent `acts` in an environment the answer has its label, or one such as
    "84 - 59 = 25" would be taken for the next action."""
    return reply.model_copy(update={"content": f"Final Answer: {answer}" if acts else answer})


def _calling(reply: AIMessage, thought: str, calls: Sequence[tuple[str, JsonObject]]) -> AIMessage:
    made = [tool_call(name=name, args=args, id=f"written_{i}") for i, (name, args) in enumerate(calls, 1)]
    return reply.model_copy(update={"content": thought, "tool_calls": made})


def _unreadable(reply: AIMessage, tools: Sequence[Declared]) -> AIMessage:
    call = invalid_tool_call(name=tools[0].name, args=reply.text, id="written_1", error=_UNREADABLE)
    return reply.model_copy(update={"content": "", "invalid_tool_calls": [call]})
