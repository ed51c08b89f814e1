"""Steps written as text: which actions there are, and what a model wants to do with them.

    Thought: I need the capital.
    Action: search[capital of France]

Actions have the form `tool[input]`, `tool(a, b)`, `tool(a=1, b=2)`, `Action:` with `Action Input:`, or JSON.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from reflective_agents.text.labels import Labelled, any_of, bare, label_of, sections, without_label
from reflective_agents.text.structure import Json, objects, read_calls

# Quantifiers are possessive (`*+`) or bounded: no text that a model writes may take more than linear time.
_OPENING = "[(［（【"
_CLOSING = "])］）】"
_NAMED = re.compile(rf"\s*+([\w.-]++)\s*+[{re.escape(_OPENING)}]")
_PLAIN = re.compile(r"\s*+([\w.-]++)(?:\s*+[:：]|\s)\s*+(.*\S)", re.DOTALL)
# "I will look it up. Action: search[x]": only with brackets, since "action:" is a word of prose, too.
_INLINE = re.compile(rf"\bAction\s?\d{{0,3}}[:：]\s?([\w.-]{{1,64}}[{re.escape(_OPENING)}][^\n]*)", re.IGNORECASE)
# "I need the capital. Action 2: search[x]": the number tells a label from a word.
_NUMBERED = re.compile(
    rf"(?<=[^\W_]|[.!?:;,)。！？])[ \t]+(?=(?:{any_of('action')})[ \t]?\d{{1,3}}[:：])", re.IGNORECASE
)
_FINAL = re.compile(rf"(?<=[^\s>#*_`])[ \t]*+(?=[*_`]{{0,3}}(?:{any_of('final')})[*_` ]{{0,4}}[:：])", re.IGNORECASE)
_TRACE = ("thought", "action", "input", "observation", "final", "question")
_PLACEHOLDER = re.compile(r"[\s.\u2026]*")
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
        does, _, _ = self.description.strip().partition("\n")
        return f"{self.name}[{listed}]: {does}"


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
    calls = read_calls(action, [tool.name for tool in tools])
    if calls:
        name, args = calls[0]
    else:
        name, input_text = name_and_input(action, by_name)
        only = tools[0] if len(tools) == 1 and list(tools[0].required) == ["action"] else None
        if only and name.casefold() != only.name.casefold():
            return only.name, {only.required[0]: action}
        args = _arguments(input_text, by_name.get(name.casefold()))
    tool = by_name.get(name.casefold())
    # JSON in other frameworks' forms calls the only argument `input`.
    if tool and args.keys() == {"input"} and "input" not in tool.fields and tool.fields:
        args = {next(iter(tool.fields)): args["input"]}
    return (tool.name, _as_declared(args, tool)) if tool else (name, args)


def name_and_input(action: str, names: Collection[str]) -> tuple[str, str]:
    """Split an action into the name of its tool and its input, in brackets or, behind one of these names, without any:
    `Search: moon`, `search moon`."""
    if named := _NAMED.match(action):
        return named[1], action[named.end() : _closing(action, named.end())]
    plain = _PLAIN.match(action)
    return (plain[1], plain[2]) if plain and plain[1].casefold() in names else (action.strip(), "")


def read_step(text: str, names: Collection[str] = (), is_action: Callable[[str], bool] | None = None) -> WrittenStep:
    """Read a step written as text: `Action: Search[x]`, `Action:` with `Action Input:`, or `Final Answer:`.

    Labels may be decorated, numbered or in another language, and need not begin their line. Whatever the model writes
    from an observation on is its own invention and is not read.

    Args:
        text: What the model wrote.
        names: The tools there are: a call of one of them is an action also without its label.
        is_action: Tells of a line whether it is an action of the task, also without its label.
    """
    for part in sections(text, ("observation",)):
        if part.name:
            text = text[: part.start]
            break
    text = text.strip()
    # As it is written first: a text in the right form is never cut at what only looks like a label.
    for form in dict.fromkeys([text, _NUMBERED.sub("\n", text), _FINAL.sub("\n", text)]):
        if step := _labelled(form):
            return step
    return _unlabelled(text, names, is_action)


def _labelled(text: str) -> WrittenStep | None:
    """Read the first action or final answer that begins a line with its label."""
    parts = list(sections(text, ("thought", "action", "input", "final")))
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        if part.name == "action" and part.value.strip():
            value = bare(part.value)
            # "Action: Final Answer: 4"
            if label_of(value.partition("\n")[0], ("final", "answer")):
                return _step(text[: part.start], answer=without_label(value, "final", "answer") or None)
            action_input = following.value.strip() if following and following.name == "input" else None
            return _step(text[: part.start], action=_in_brackets(value, action_input))
        if part.name == "final":
            return _step(text[: part.start], answer=bare(text[part.begin :]) or None)
    return None


def _unlabelled(text: str, names: Collection[str], is_action: Callable[[str], bool] | None) -> WrittenStep:
    """Read a step that has none of the forms that the prompt asks for."""
    if inline := _INLINE.search(text):
        return _step(text[: inline.start()], action=bare(inline[1]))
    known = {name.casefold() for name in names}
    for line in text.splitlines():
        plain = without_label(line, "thought")
        named = _NAMED.match(plain)
        calls = named is not None and named[1].casefold() in known
        if calls or (is_action and is_action(plain)):
            return _step(text.partition(line)[0], action=plain)
    if read_calls(text, names):
        return _step("", action=text)
    labelled = [part for part in sections(text, ("answer",)) if part.name]
    if labelled:
        return _step(text[: labelled[-1].start], answer=bare(labelled[-1].value) or None)
    return _step(text)


def read_answer(text: str) -> str | None:
    """Read the answer of a model that may not act any more: what stands after its last `Final Answer:`, wherever in a
    line and after whatever steps and observations it has invented before; else after its last `Answer:`.

    A further question that the model makes up after its answer is not read.

    Returns:
        The answer; None if none is labelled.
    """
    for form in dict.fromkeys([text, _FINAL.sub("\n", text)]):
        parts = _until_next_question(list(sections(form, _TRACE)))
        finals = [number for number, part in enumerate(parts) if part.name == "final" and _is_filled(part.value)]
        if finals:
            return bare(_whole(form, parts, finals[-1]))
    answers = [part.value for part in sections(text, ("answer", *_TRACE)) if part.name == "answer"]
    filled = [*filter(_is_filled, answers)]
    return bare(filled[-1]) if filled else None


def _until_next_question(parts: list[Labelled]) -> list[Labelled]:
    """Return the parts of a text up to the question that follows its final answer."""
    names = [part.name for part in parts]
    first = names.index("final") if "final" in names else len(names)
    return parts[: names.index("question", first)] if "question" in names[first:] else parts


def _whole(text: str, parts: Sequence[Labelled], number: int) -> str:
    """Return a final answer: to the next label in an invented trace, else, for it may hold words that look like labels,
    to the next observation."""
    if any(part.name in ("action", "observation") for part in parts[:number]):
        return parts[number].value
    ends = [part.start for part in parts[number + 1 :] if part.name == "observation"]
    last = parts[-1]
    return text[parts[number].begin : min(ends, default=last.begin + len(last.value))]


def _is_filled(value: str) -> bool:
    """Return whether there is more in a value than the dots of the form."""
    return not _PLACEHOLDER.fullmatch(bare(value))


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
        for value in objects(text):
            if isinstance(value, dict):
                return value
        return {"input": text}
    fields = list(tool.fields) if tool else ["input"]
    parts = _parts(text)
    named: dict[str, Json] = {}
    is_pairs = bool(parts)
    for part in parts:
        if pair := _PAIR.match(part):
            named[pair[1]] = _plain(pair[2])
        else:
            is_pairs = False
    # A single `x=2` may be the value itself, such as an equation, unless the tool has an argument of this name.
    if is_pairs and (len(parts) > 1 or named.keys() <= {*fields}):
        return named
    required = len(tool.required) if tool else 1
    if not fields:
        return _in_order(fields, parts)
    if not parts and required != 1:
        return {}
    # A comma is a part of the text where the tool needs no second argument.
    if required <= 1 or len(parts) < required:
        return {fields[0]: _plain(text)}
    return _in_order(fields, parts)


def _in_order(fields: Sequence[str], parts: Sequence[str]) -> dict[str, Json]:
    """Give values to arguments in their order; those that the tool does not have are numbered."""
    further = [f"argument {number}" for number in range(len(fields) + 1, len(parts) + 1)]
    return {name: _plain(part) for name, part in zip([*fields, *further], parts, strict=False)}


def _parts(text: str) -> list[str]:
    """Split a text at the commas that are outside quotes and brackets."""
    parts = [""]
    depth = 0
    quote = ""
    for mark in _SPLIT.findall(text):
        if mark == quote:
            quote = ""
        elif not quote and mark in "\"'":
            quote = mark
        if not quote and mark in "[({":
            depth += 1
        elif not quote and mark in "])}":
            depth -= 1
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
    closing = _CLOSING[_OPENING.index(opening)]
    depth = 1
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
    by_name = {tool.name.casefold(): tool for tool in reversed(tools)}
    tool = by_name.get(name.casefold())
    args = _arguments(text, tool)
    return (tool.name, _as_declared(args, tool)) if tool else (name, args)


def _as_declared(args: Mapping[str, Json], tool: Declared) -> dict[str, Json]:
    """Return arguments with texts where the tool takes a text: `search[1874]` looks for the year, not for a number."""
    read: dict[str, Json] = {}
    for name, value in args.items():
        takes_text = tool.fields.get(name, {}).get("type") == "string"
        read[name] = _text_of(value) if takes_text else value
    return read


def _text_of(value: Json) -> Json:
    match value:
        case None | str():
            return value
        case [str() as only]:
            return only
        case _:
            return json.dumps(value, ensure_ascii=False)
