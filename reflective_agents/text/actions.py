"""Steps written as text: which actions there are, and what a model wants to do with them.

    Thought: I need the capital.
    Action: search[capital of France]

Actions have the form `tool[input]`, `tool(a, b)`, `tool(a=1, b=2)`, `Action:` with `Action Input:`, or JSON.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from reflective_agents.text.labels import bare, sections, without_label
from reflective_agents.text.structure import Json, objects, read_calls

_OPENING = "[(［（【"
_CLOSING = "])］）】"
_NAMED = re.compile(rf"\s*+([\w.-]++)\s*+[{re.escape(_OPENING)}]")
_INLINE = re.compile(rf"\bAction\s?\d{{0,3}}[:：]\s?([\w.-]{{1,64}}[{re.escape(_OPENING)}][^\n]*)", re.IGNORECASE)
_PAIR = re.compile(r"\s*+([A-Za-z_]\w*+)\s*+[=：:]\s*+(.*)", re.DOTALL)
_SPLIT = re.compile(r"[\"'\[\](){},，]|[^\"'\[\](){},，]++")


class Declared(NamedTuple):
    """A tool as it is declared: its arguments by name, with the JSON schema of each, and which it needs."""

    name: str
    description: str
    fields: Mapping[str, Mapping[str, Any]]
    required: Sequence[str]

    def line(self) -> str:
        """Describe the tool on one line of a prompt: its signature, and what it does."""
        listed = ", ".join(f"{name}: {_type(field)}" for name, field in self.fields.items())
        return f"{self.name}[{listed}]: {self.description.strip().partition(chr(10))[0]}"


class WrittenStep(NamedTuple):
    """What a model wants to do next: an action or an answer, or neither if that could not be read."""

    thought: str
    action: str = ""
    answer: str | None = None


def declared(tool: Mapping[str, Any]) -> Declared:
    """Read the declaration of a tool in OpenAI's form."""
    function = tool["function"]
    schema = function.get("parameters") or {}
    description = function.get("description") or ""
    return Declared(function["name"], description, schema.get("properties") or {}, schema.get("required") or ())


def read_call(action: str, tools: Sequence[Declared]) -> tuple[str, dict[str, Json]]:
    """Read the tool that an action names, and its arguments.

    Where the only tool takes an action, as that of an environment does, it need not be named.
    """
    by_name = {tool.name.casefold(): tool for tool in tools}
    if calls := read_calls(action, [tool.name for tool in tools]):
        name, args = calls[0]
    else:
        named = _NAMED.match(action)
        name = named[1] if named else action.strip()
        only = tools[0] if len(tools) == 1 and list(tools[0].required) == ["action"] else None
        if only and name.casefold() != only.name.casefold():
            return only.name, {only.required[0]: action}
        input_text = action[named.end() : _closing(action, named.end())] if named else ""
        args = _arguments(input_text, by_name.get(name.casefold()))
    tool = by_name.get(name.casefold())
    if tool and args.keys() == {"input"} and "input" not in tool.fields and tool.fields:
        args = {next(iter(tool.fields)): args["input"]}
    return tool.name if tool else name, args


def read_step(text: str, names: Collection[str] = ()) -> WrittenStep:
    """Read a step written as text: `Action: Search[x]`, `Action:` with `Action Input:`, or `Final Answer:`.

    Labels may be decorated, numbered or in another language. Whatever the model writes from an observation on is its
    own invention and is not read.

    Args:
        text: What the model wrote.
        names: The tools there are: a call of one of them is an action also without its label.
    """
    invented = next((part.start for part in sections(text, ("observation",)) if part.name), len(text))
    text = text[:invented].strip()
    parts = list(sections(text, ("thought", "action", "input", "final")))
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        if part.name == "action" and part.value.strip():
            action_input = following.value.strip() if following and following.name == "input" else None
            return _step(text[: part.start], action=_in_brackets(bare(part.value), action_input))
        if part.name == "final":
            return _step(text[: part.start], answer=bare(text[part.begin :]) or None)
    return _unlabelled(text, names)


def _unlabelled(text: str, names: Collection[str]) -> WrittenStep:
    """Read a step that has none of the forms that the prompt asks for."""
    if inline := _INLINE.search(text):
        return _step(text[: inline.start()], action=bare(inline[1]))
    for line in text.splitlines():
        named = _NAMED.match(bare(line))
        if named and named[1].casefold() in {name.casefold() for name in names}:
            return _step(text.partition(line)[0], action=bare(line))
    if read_calls(text, names):
        return _step("", action=text)
    labelled = [part for part in sections(text, ("answer",)) if part.name]
    if labelled:
        return _step(text[: labelled[-1].start], answer=bare(labelled[-1].value) or None)
    return _step(text)


def _step(thought: str, action: str = "", answer: str | None = None) -> WrittenStep:
    return WrittenStep(without_label(thought.strip(), "thought"), action, answer)


def _in_brackets(action: str, action_input: str | None) -> str:
    """Rewrite an action in the form that environments read: with plain brackets around its input."""
    if action_input is not None:
        return f"{action}[{action_input}]"
    named = _NAMED.match(action)
    if named is None or action[named.end() - 1] in "[(":
        return action
    end = _closing(action, named.end())
    return f"{named[1]}[{action[named.end() : end]}]"


def _arguments(text: str, tool: Declared | None) -> dict[str, Json]:
    """Read what is in the brackets: JSON, `name=value`, values in their order, or the one required value."""
    if text.strip().startswith("{"):
        return next((dict(value) for value in objects(text) if isinstance(value, dict)), {"input": text})
    fields = list(tool.fields) if tool else ["input"]
    parts = _parts(text)
    pairs = [_PAIR.match(part) for part in parts]
    if all(pair and (pair[1] in fields or len(parts) > 1) for pair in pairs) and parts:
        return {pair[1]: _plain(pair[2]) for pair in pairs if pair}
    required = len(tool.required) if tool else 1
    if not fields:
        return {f"argument {number}": _plain(part) for number, part in enumerate(parts, 1)}
    if not parts and required != 1:
        return {}
    if required <= 1 or len(parts) < required:
        return {fields[0]: _plain(text)}
    return {(fields[i] if i < len(fields) else f"argument {i + 1}"): _plain(part) for i, part in enumerate(parts)}


def _parts(text: str) -> list[str]:
    """Split a text at the commas that are outside quotes and brackets."""
    parts, depth, quote = [""], 0, ""
    for mark in _SPLIT.findall(text):
        if quote or mark in "\"'":
            quote = ("" if mark == quote else quote) if quote else mark
        depth += (mark in "[({") - (mark in "])}") if not quote else 0
        if mark in ",，" and not quote and depth <= 0:
            parts.append("")
        else:
            parts[-1] += mark
    return [part.strip() for part in parts if part.strip()]


def _plain(text: str) -> Json:
    """Read a value as it was meant: a number, true, false, null, or text without its quotes."""
    text = text.strip()
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return bare(text) if text[:1] in "\"'“" else text
    return value


def _closing(text: str, begin: int) -> int:
    """Find where the bracket closes that was opened before a place, whatever follows; else the end."""
    opening = text[begin - 1]
    closing, depth = _CLOSING[_OPENING.index(opening)], 1
    for index in range(begin, len(text)):
        depth += {opening: 1, closing: -1}.get(text[index], 0)
        if depth == 0:
            return index
    return len(text)


def _type(field: Mapping[str, Any]) -> str:
    named = field.get("type") or "/".join(option.get("type", "any") for option in field.get("anyOf", []))
    optional = f" = {json.dumps(field['default'])}" if "default" in field else ""
    return f"{named or 'any'}{optional}"


def arguments_of(name: str, text: str, tools: Sequence[Declared]) -> tuple[str, dict[str, Json]]:
    """Read the arguments that are given to a tool as text, as they would stand in its brackets."""
    tool = next((tool for tool in tools if tool.name.casefold() == name.casefold()), None)
    return (tool.name if tool else name), _arguments(text, tool)
