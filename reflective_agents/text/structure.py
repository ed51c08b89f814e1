"""JSON objects in what models write: fenced, wrapped, with single quotes or trailing commas, amid other text.

The libraries that mend JSON take minutes for some texts of 20 kB. This reader looks at each character a bounded number
of times, and never raises.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import TypeAlias

from reflective_agents.text.clean import clean_data

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_DEPTH = 40
_LONGEST = 50_000
"""Characters that are read."""
_TRY = 200
"""Characters that a try counts for at least."""
_NESTED = 5_000
"""Characters that a text counts for which is nested too deeply."""
_AGAIN = 2
"""How many times the length of a text may be read in vain, or one of nothing but brackets would take its square."""
_JSON = json.JSONDecoder()
_BEGIN = re.compile(r"[{\[]")
_BLANK = re.compile(r"\s*+")
# Bounded: Python raises for integers of more than 4,300 digits.
_NUMBER = re.compile(r"-?+(?:0|[1-9]\d{0,300}+)(?:\.\d{1,300}+)?(?:[eE][+-]?\d{1,3})?(?=[\s,}\]]|$)")
_BARE = re.compile(r"[^\s,:{}\[\]\"']++(?:[^\S\n]++[^\s,:{}\[\]\"']++)*+")
_PLAIN = re.compile(r"[^\"'“”\\]++")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "none": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CLOSING = {'"': '"', "'": "'", "“": "”"}
_NAMES, _ARGUMENTS = (
    ("name", "tool", "action", "function"),
    ("arguments", "args", "parameters", "action_input", "input"),
)


def read_object(text: str, fields: Collection[str], name: str = "") -> dict[str, Json] | None:
    """Read the first object of a text that has one of the fields, also where it is wrapped.

    Args:
        text: What a model wrote.
        fields: The fields wanted, none for any object. If there is only one, a list stands for its value.
        name: Name of the form, in which the object may be wrapped: `{"<name>": {...}}`.

    Returns:
        The object with all that it holds; None if there is none, or the text breaks off within it.
    """
    for value in objects(text):
        alone = value[0] if isinstance(value, list) and len(value) == 1 and len(fields) > 1 else value
        for inner in _unwrapped(alone, name):
            if not fields or any(field in inner for field in fields):
                return inner
        if isinstance(value, list) and len(fields) == 1 and value and all(isinstance(item, dict) for item in value):
            return {next(iter(fields)): value}
    return None


def read_calls(text: str, names: Collection[str]) -> list[tuple[str, dict[str, Json]]]:
    """Read the tool calls that a model wrote as text, such as `{"name": "search", "arguments": {"query": "x"}}`.

    Args:
        text: What the model wrote, with or without `<tool_call>` tags and fences.
        names: The tools that there are. A text that is nothing but one call may name another one.

    Returns:
        Name and arguments of each call, in order.
    """
    calls: list[tuple[str, dict[str, Json]]] = []
    nothing_else = _is_all(text)
    for value in objects(text):
        for item in value if isinstance(value, list) else [value]:
            call = _as_call(item)
            if call and (call[0] in names or nothing_else):
                calls.append(call)
    return calls


def objects(text: str) -> Iterator[Json]:
    """Yield the objects and lists of a text, outermost ones only, in order."""
    text = text[:_LONGEST]
    position, budget = 0, _AGAIN * len(text) + 10 * _TRY
    while budget > 0 and (start := _BEGIN.search(text, position)):
        begin = start.start()
        try:
            value, position = _whole(text, begin)
        except _BrokenOff as broken:
            budget -= max(broken.position - begin, _TRY)
            position = begin + 1
        else:
            yield clean_data(value)


def _unwrapped(value: Json, name: str) -> Iterator[dict[str, Json]]:
    """Yield an object, then the objects that it may be wrapped around."""
    if not isinstance(value, dict):
        return
    yield value
    if call := _as_call(value):
        yield call[1]
    inner = value.get(name) if name else None
    inner = next(iter(value.values())) if inner is None and len(value) == 1 else inner
    if isinstance(inner, dict):
        yield inner


def _as_call(value: Json) -> tuple[str, dict[str, Json]] | None:
    # OpenAI's own form: {"id": ..., "type": "function", "function": {...}}.
    if isinstance(value, dict) and len(value) <= 3 and isinstance(value.get("function"), dict):
        value = value["function"]
    # An object with a description declares a tool: the model repeats its prompt.
    if not isinstance(value, dict) or len(value) > 4 or "description" in value:
        return None
    names = [value[key] for key in _NAMES if isinstance(value.get(key), str)]
    given = [value[key] for key in _ARGUMENTS if key in value]
    if not names or not given:
        return None
    arguments = given[0]
    if isinstance(arguments, str):
        arguments = _written_arguments(arguments)
    return (str(names[0]), arguments) if isinstance(arguments, dict) else None


def _written_arguments(text: str) -> dict[str, Json]:
    """Read arguments that are a string, as OpenAI's form has them: JSON, or else the input itself."""
    if "{" in text:
        for value in objects(text):
            if isinstance(value, dict):
                return value
    return {"input": text}


def _is_all(text: str) -> bool:
    """Tell whether a text is nothing but an object, apart from fences and tags."""
    bare = re.sub(r"```\w*+|</?+\w{1,20}+>", "", text).strip()
    return bare.startswith(("{", "[")) and bare.endswith(("}", "]"))


class _BrokenOff(Exception):
    """Raised when a value does not end; `position` is how far it was read."""

    def __init__(self, position: int) -> None:
        self.position = position


def _whole(text: str, begin: int) -> tuple[Json, int]:
    """Read the value that begins at a place, and return it with its end; as strict JSON if possible."""
    try:
        value: tuple[Json, int] = _JSON.raw_decode(text, begin)
        return value
    except RecursionError:
        raise _BrokenOff(begin + _NESTED) from None
    except ValueError as error:
        reached = getattr(error, "pos", len(text))
    try:
        return _value(text, begin, 0)
    except _BrokenOff as broken:
        raise _BrokenOff(max(broken.position, reached)) from None
    # The readers below look at the next character without asking whether there is one.
    except IndexError:
        raise _BrokenOff(len(text)) from None


def _value(text: str, at: int, depth: int) -> tuple[Json, int]:
    at = _skip(text, at)
    first = text[at]
    if first == "{" or first == "[":
        if depth >= _DEPTH:
            raise _BrokenOff(at)
        return _object(text, at + 1, depth) if first == "{" else _list(text, at + 1, depth)
    if first in _CLOSING:
        return _string(text, at, ",}]")
    if number := _NUMBER.match(text, at):
        parsed: Json = json.loads(number[0])
        return parsed, number.end()
    bare = _BARE.match(text, at)
    if bare is None:
        raise _BrokenOff(at)
    return _WORDS.get(bare[0].lower(), bare[0]), bare.end()


def _object(text: str, at: int, depth: int) -> tuple[Json, int]:
    result: dict[str, Json] = {}
    while True:
        at = _skip(text, at)
        if text[at] == "}":
            return result, at + 1
        if text[at] == ",":
            at += 1
            continue
        if text[at] in _CLOSING:
            key, at = _string(text, at, ":")
        else:
            bare = _BARE.match(text, at)
            if bare is None:
                raise _BrokenOff(at)
            key, at = bare[0], bare.end()
        at = _skip(text, at)
        if text[at] != ":":
            raise _BrokenOff(at)
        result[key], at = _value(text, at + 1, depth + 1)


def _list(text: str, at: int, depth: int) -> tuple[Json, int]:
    items: list[Json] = []
    while True:
        at = _skip(text, at)
        if text[at] == "]":
            return items, at + 1
        if text[at] == ",":
            at += 1
            continue
        value, at = _value(text, at, depth + 1)
        items.append(value)


def _string(text: str, at: int, followers: str) -> tuple[str, int]:
    """Read a string; an unescaped quote inside does not end it, for something else follows."""
    closing, parts, at = _CLOSING[text[at]], [], at + 1
    while True:
        if plain := _PLAIN.match(text, at):
            parts.append(plain[0])
            at = plain.end()
        if text[at] == "\\":
            parts.append(text[at : at + 2])
            at += 2
        elif text[at] == closing and text[_skip(text, at + 1)] in followers:
            return _unescaped("".join(parts)), at + 1
        else:
            parts.append(text[at])
            at += 1


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2]), text)
    # Joins pairs of surrogates (\ud83d\ude00) to the character that they stand for; what is alone becomes a
    # sign for it.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at
