"""A model that answers at random: a function of a seed and of what is asked."""

import random
from collections.abc import Sequence
from typing import Any

from langchain_core.exceptions import ModelConnectionError, ModelInvalidRequestError, ModelRateLimitError
from langchain_core.messages import AIMessage

from reflective_agents.state.json_types import JsonMapping, JsonObject
from reflective_agents.testing.script import Reply, Request, ToolUse

SENTENCES = [
    "The sea is pulled by the Moon [1].",
    "It costs 6.40 crowns [2].",
    "Nobody knows [9].",
    "The sorted list is [1, 2, 3].",
    "See https://nowhere.example/page for more.",
    "I do not know.",
    "Reflection finds mistakes.",
    "[1] says so, and [2] denies it [1, 2].",
    "```python\na[1] = a[2]\n```",
    "IMPOSSIBLE: nothing was found.",
    "Yes.",
    "海由月亮引起潮汐 [1]。",
]
ENDS = [
    "4",
    "the Moon",
    "SUPPORTS",
    "42 crowns",
    "None",
    "(10 - 4) * 5 - 6 = 24",
    "10 + 4 + 5 + 6 = 24",
    "I am not sure",
    "it depends [1]",
]
ACTIONS = [
    "10 - 4 = 6 (left: 5 6 6)",
    "5 * 6 = 30 (left: 6 30)",
    "30 - 6 = 24 (left: 24)",
    "search[Moon]",
    "lookup[sea]",
    "finish[the Moon]",
    "finish[4]",
    "calculate[2 + 2]",
    "unstack red blue",
    "put-down red",
    "pick-up white",
    "stack white red",
]


EMPTY = ("missing", "superfluous")
JUDGED = {"reasoning": "string", "score": "number", "solved": "boolean"}


class Model:
    """A model whose replies are chance: a function of the seed and of what is asked. It notes what it has accepted.

    Args:
        seed: What the chance begins with.
        faults: The share of the calls that fail or break their form.
        agrees: The chance with which it accepts, calls complete, or calls solved.
        right: What it knows of the right answer, and writes as often as anything else.
    """

    def __init__(self, seed: int, faults: float, agrees: float, right: Sequence[str]) -> None:
        self.seed, self.faults, self.agrees, self.right = seed, faults, agrees, right
        self.accepted: list[tuple[str, JsonObject]] = []

    def __call__(self, request: Request) -> Reply:
        """Answer a request."""
        chance = random.Random(f"{self.seed} {request.key} {request.index} {request.attempt}")
        if chance.random() < self.faults:
            return self._fault(chance, request)
        if request.schema is not None:
            filled: JsonObject = self._value(chance, request.schemas[request.schema], "", {}, request)
            if any(filled.get(name) for name in ("accept", "solved", "done")):
                self.accepted.append((request.schema, filled))
            if request.schema == "Judgements":
                filled = self._judgements(chance, request)
            return filled
        if request.as_json:
            return {}
        if request.tools and request.tool_choice != "none" and chance.random() < 0.5:
            name = chance.choice(request.tools)
            args = self._value(chance, request.schemas.get(name, {"type": "object"}), "", {}, request)
            return ToolUse(name, args)
        return self._text(chance)

    def _fault(self, chance: random.Random, request: Request) -> Reply:
        errors: list[Reply] = [
            ModelConnectionError("the connection broke"),
            ModelRateLimitError("too many requests"),
            ModelInvalidRequestError("the request is invalid"),
            AIMessage(""),
            "I would rather say it in plain words.",
            ToolUse("no_such_tool", {}),
        ]
        broken = [ToolUse(request.schema, '{"broken": ')] if request.schema and not request.as_json else []
        return chance.choice([*errors, *broken])

    def _text(self, chance: random.Random) -> str:
        kind = chance.randrange(14 if self.right else 7)
        if kind >= 7:
            return f"Thought: So.\nAction: {chance.choice(self.right)}" if kind % 2 else f"Answer: {self.right[-1]}"
        if kind == 0:
            return chance.choice(ACTIONS)
        if kind == 1:
            return f"Thought: So.\nAction: {chance.choice(ACTIONS)}"
        if kind == 2:
            return "\n".join(chance.sample(ACTIONS, 3))
        if kind == 3:
            return chance.choice(
                ["sure", "likely", "impossible", "Now we can answer the question.", "What is the sea?"]
            )
        text = " ".join(chance.sample(SENTENCES, chance.choice([1, 1, 2])))
        return text if kind == 4 else f"{text}\nAnswer: {chance.choice(ENDS)}"

    def _judgements(self, chance: random.Random, request: Request) -> JsonObject:
        shown = next((m.text for m in reversed(request.messages) if "<candidate " in m.text), "")
        form: JsonObject = {"type": "object", "properties": {name: {"type": kind} for name, kind in JUDGED.items()}}
        judged = [self._value(chance, form, "", {}, request) for _ in range(max(shown.count("<candidate "), 1))]
        self.accepted += [("Judgements", each) for each in judged if each["solved"]]
        return {"judgements": judged}

    def _value(
        self, chance: random.Random, schema: JsonMapping, name: str, definitions: JsonMapping, request: Request
    ) -> Any:
        definitions = schema.get("$defs", definitions)
        if "$ref" in schema:
            return self._value(chance, definitions[schema["$ref"].rsplit("/", 1)[-1]], name, definitions, request)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return chance.choice(schema["enum"])
        if options := schema.get("anyOf") or schema.get("allOf"):
            return self._value(chance, chance.choice(options), name, definitions, request)
        match schema.get("type"):
            case "object":
                parts = schema.get("properties", {})
                return {key: self._value(chance, part, key, definitions, request) for key, part in parts.items()}
            case "array":
                least = schema.get("minItems", 0)
                count = chance.randint(least, min(schema.get("maxItems", least + 2), least + 2))
                items = schema.get("items", {"type": "string"})
                values = [self._value(chance, items, name, definitions, request) for _ in range(count)]
                for number, value in enumerate(values):
                    if isinstance(value, dict) and "needs" in value:
                        value |= {"id": f"g{number}-{chance.randrange(10**6)}", "needs": []}
                return values
            case "boolean":
                return chance.random() < self.agrees
            case "integer":
                return chance.randint(int(schema.get("minimum", 0)), int(min(schema.get("maximum", 10), 10)))
            case "number":
                return chance.choice([0.0, 0.25, 0.5, 0.69, 0.7, 0.75, 0.9, 1.0])
            case "null":
                return None
            case _:
                return chance.choice(["", "nothing", "more"]) if name in EMPTY else chance.choice(SENTENCES)
