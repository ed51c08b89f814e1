"""Filling a JSON schema from the conversation, as the offline model does when it is made to call a tool.

Fields with a known name get what they ask for (score, critique, answer, references, search_queries ...); every other
field is filled by its type. The result fits the schema for the keywords that pydantic writes, except `pattern`, and
except unique items that are themselves arrays or objects.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reflective_agents.offline.grading import Grade, grade
from reflective_agents.offline.planning import best, subgoals, tasks, useful, waiting
from reflective_agents.offline.reading import Reading
from reflective_agents.offline.writing import SENTENCES, VARIANTS, Written, queries, select, write
from reflective_agents.state.forks import CachedProperty
from reflective_agents.state.json_types import JsonMapping
from reflective_agents.text.structure import Json

Schema: TypeAlias = JsonMapping

ANSWERS = {"answer", "final_answer", "essay", "draft", "response", "summary"}
CRITIQUES = {"critique", "reasoning", "reflection", "feedback", "justification", "explanation", "lesson", "rationale"}
VERDICTS = {"accept", "complete", "accepted", "solved", "is_solved", "found_solution"}
QUERIES = {"search_queries", "queries"}
SCORES = {"score", "grade", "rating"}
MEANINGFUL = ANSWERS | CRITIQUES | VERDICTS | QUERIES | SCORES | {"query", "references", "missing", "judgements"}
"""Names of fields that are filled in even where a default stands for them."""
FORMATS: dict[str, str] = {
    "date": "1970-01-01",
    "date-time": "1970-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "nobody@example.org",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}
MAX_VALUES = 1_000
"""Values that are filled in; what a schema asks for beyond stays empty, since a stranger may have written it."""
MAX_LENGTH = 2_000
"""Characters of a text that a schema wants to be longer."""
MAX_DEPTH = 6
"""Levels of nesting below which optional fields are left out, so that recursive schemas come to an end."""


@dataclass(frozen=True)
class Filler:
    """Fills one schema from one conversation."""

    reading: Reading
    root: Schema
    variant: int = 0
    left: Iterator[int] = field(default_factory=lambda: iter(range(MAX_VALUES)), compare=False)
    """Counts the values down."""

    @CachedProperty
    def _fields(self) -> set[str]:
        return set(self._resolve(self.root).get("properties", {}))

    @CachedProperty
    def _answer(self) -> Written:
        length, skipped = VARIANTS[self.variant % len(VARIANTS)]
        anew = "references" in self._fields
        return write(self.reading, length, skipped, named="reflection" not in self._fields, anew=anew)

    @CachedProperty
    def _grade(self) -> Grade:
        """The grade of the answer being written, if the schema asks for one; else of the draft."""
        if "best" in self._fields:
            return grade(self._best, self._best.draft)
        if self._fields & ANSWERS:
            return grade(self.reading, str(self._answer))
        return grade(self.reading, self.reading.draft)

    @CachedProperty
    def _best(self) -> Reading:
        return best(self.reading)

    @property
    def _number_of_best(self) -> int:
        """The number of the best candidate; 0 if there is none."""
        return int(self._best.name) if self._best.name.isdecimal() and self._best.draft else 0

    def fill(self) -> Any:
        """Return a value that fits the schema."""
        return self._value(self.root, "", 0, 0)

    def _resolve(self, schema: Schema) -> Schema:
        """Follow references and merge `allOf`."""
        merged = dict(schema) if isinstance(schema, Mapping) else {}
        while "$ref" in merged:
            target: Any = self.root
            # A JSON pointer (RFC 6901), in which ~1 stands for a slash and ~0 for a tilde.
            for key in merged.pop("$ref").removeprefix("#").strip("/").split("/"):
                target = target[key.replace("~1", "/").replace("~0", "~")] if key else target
            merged = {**target, **merged}
        for part in merged.pop("allOf", ()):
            merged = {**merged, **self._resolve(part)}
        return merged

    def _value(self, schema: Schema, name: str, index: int, depth: int) -> Any:
        """Fill one place; `index` tells the items of an array apart."""
        if next(self.left, None) is None:
            return None
        schema = self._resolve(schema)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._value(self._option(schema[key], index, depth), name, index, depth)
        if "const" in schema:
            return schema["const"]
        if name == "best" and "enum" in schema and self._number_of_best in schema["enum"]:
            return self._number_of_best
        if schema.get("enum"):
            return schema["enum"][index % len(schema["enum"])]
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((option for option in kind if option != "null"), "null")
        if kind == "object":
            return self._object(schema, index, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        if name == "done" and kind == "boolean":
            return self._grade.accepted and not waiting(self.reading)
        if kind == "boolean":
            return self._grade.accepted if name in VERDICTS else bool(index % 2)
        if kind in {"number", "integer"}:
            try:
                return self._number(schema, name, index, whole=kind == "integer")
            except OverflowError:  # no such number can be calculated with
                return 0
        return self._string(schema, name, index) if kind == "string" else None

    def _option(self, options: list[Schema], index: int, depth: int) -> Schema:
        """Choose a branch: not null, unless that is the way out of a recursion."""
        resolved = list(map(self._resolve, options))
        plain = [option for option in resolved if option.get("type") in {"string", "number", "integer", "boolean"}]
        null = [option for option in resolved if option.get("type") == "null"]
        if depth >= MAX_DEPTH and (null or plain):
            return (null or plain)[0]
        for option in resolved:
            if option.get("type") != "null":
                return option
        return resolved[0]

    def _object(self, schema: Schema, index: int, depth: int) -> dict[str, Json]:
        required = set(schema.get("required", ()))
        filled: dict[str, Json] = {}
        for name, part in schema.get("properties", {}).items():
            if name in required or (depth < MAX_DEPTH and self._is_wanted(name, part)):
                filled[name] = self._value(part, name, index, depth + 1)
        return filled

    def _is_wanted(self, name: str, part: Schema) -> bool:
        """Tell whether a field that may be left out is filled in: one with a meaning, and one without a default."""
        return name in MEANINGFUL or "default" not in self._resolve(part)

    def _array(self, schema: Schema, name: str, depth: int) -> list[Json]:
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        prefix, items = schema.get("prefixItems", ()), schema.get("items", {})
        named = list(self._named_items(name, least, items))
        fitting = [value for value in named if _fits(value, self._resolve(items))]
        values = fitting[: int(min(most, len(fitting)))]
        for part in prefix[len(values) :]:
            values.append(self._value(part, name, 0, depth + 1))
        for index in range(len(values), min(least, MAX_VALUES)):
            values.append(self._value(items, name, index, depth + 1))
        return values

    def _named_items(self, name: str, least: int, items: Schema) -> Iterator[Any]:
        """Yield the items of an array whose name has a meaning."""
        if name in QUERIES:
            new = queries(self.reading, of_missing=bool(self.reading.sentences))
            yield from new or queries(self.reading)[:least]
        elif name in {"references", "sources", "urls"}:
            yield from self._answer.references
        elif name == "subgoals":
            yield from subgoals(self.reading)
        elif name == "scores":
            for candidate in self.reading.candidates:
                yield useful(self.reading, candidate.text)
        elif name == "tasks" and self.reading.members:
            yield from tasks(self.reading)
        elif "score" in self._resolve(items).get("properties", {}):
            root = {key: self.root[key] for key in ("$defs", "definitions") if key in self.root}
            for candidate in self.reading.candidates:
                yield Filler(candidate, {**root, **self._resolve(items)}, self.variant, self.left).fill()

    def _number(self, schema: Schema, name: str, index: int, *, whole: bool) -> float | int:
        low, high = _bounds(schema, whole=whole)
        step = schema.get("multipleOf", 1 if whole else 0)
        if name == "best" and whole:
            value: float = self._number_of_best or low or 0
        elif name in SCORES:
            span = 10 if whole else 1
            bottom = _lowest(low, high)
            top = high if high is not None else max(span, bottom)
            value = bottom + self._grade.score * (top - bottom)
            # Rounded down to a multiple that is allowed, and not below the lowest of them.
            value = max(math.floor(value / step), math.ceil(bottom / step)) * step if step else value
        elif step:
            last = None if high is None else math.floor(high / step)
            first = _lowest(None if low is None else math.ceil(low / step), last)
            count = index + 1 if last is None else last - first + 1
            value = (first + index % max(count, 1)) * step
        elif low is not None and high is not None:
            # Different for each item, and within the bounds however many there are.
            value = low + (high - low) * (1 - 0.5**index)
        else:
            value = low + index if low is not None else _lowest(low, high) - index
        return round(value) if whole else float(value)

    def _string(self, schema: Schema, name: str, index: int) -> str:
        if schema.get("format") in FORMATS:
            return FORMATS[schema["format"]]
        text, mark = self._text(name, index)
        most = schema.get("maxLength", len(text) + len(mark))
        least = min(schema.get("minLength", 0), MAX_LENGTH)
        shortened = text[: max(most - len(mark), 0)] + mark
        return shortened[:most].ljust(least, ".")

    def _text(self, name: str, index: int) -> tuple[str, str]:
        """Return what a string of this name asks for, and the number that tells a repeated one apart."""
        if name in ANSWERS and "references" in self._fields:
            return self._answer.text, ""
        if name in ANSWERS:
            return str(self._answer), ""
        if name in CRITIQUES:
            return str(self._grade), ""
        if name == "missing":
            return self._grade.not_covered, ""
        if name == "superfluous":
            return "", ""
        if name in {"query", *QUERIES}:
            best = queries(self.reading)
        else:
            best = [sentence.text for sentence in select(self.reading, SENTENCES)]
        if index < len(best):
            return best[index], ""
        return self.reading.question.strip(), f" {index + 1}" if index else ""


def _fits(value: Json, schema: Schema) -> bool:
    """Tell whether a value that a field's name suggests is allowed by its schema."""
    if isinstance(value, float):
        return bool(schema.get("type") == "number" and (schema.get("minimum", 0), schema.get("maximum", 1)) == (0, 1))
    if not isinstance(value, str):
        return bool(schema.get("type", "object") == "object")
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    allowed = schema.get("type") == "string" and value in schema.get("enum", [value])
    return bool(allowed and least <= len(value) <= most)


def _lowest(low: float | None, high: float | None) -> float:
    """Return where to begin between two bounds, each of which may be missing: at the lower one, or at 0."""
    if low is not None:
        return low
    return 0 if high is None else min(0, high)


def _bounds(schema: Schema, *, whole: bool) -> tuple[float | None, float | None]:
    """Return the lowest and the highest value allowed, or None; an exclusive bound is moved inwards."""
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if whole:
        lows = [math.ceil(low)] if low is not None else []
        highs = [math.floor(high)] if high is not None else []
        if above is not None:
            lows.append(math.floor(above) + 1)
        if below is not None:
            highs.append(math.ceil(below) - 1)
        return max(lows, default=None), min(highs, default=None)
    upper = [bound for bound in (high, below) if bound is not None]
    lower = [bound for bound in (low, above) if bound is not None]
    top, bottom = min(upper, default=None), max(lower, default=None)
    width = 1.0 if top is None or bottom is None else top - bottom
    if bottom is not None and bottom == above:
        bottom += width / 2
    if top is not None and top == below:
        top -= width / 4
    return bottom, top
