"""The model of the eight tasks: it answers in the form that each library asks for."""

import json
import re
from collections.abc import Mapping

from bench.peers.lines.tasks import BEST, CRITERION, PEOPLE, problem
from reflective_agents.state.json_types import JsonObject
from reflective_agents.testing.script import Reply, Request, ToolUse

CITY = {"name": "Paris", "people": 2102650}
QUESTIONS: Mapping[str, list[str]] = {
    "use_tool": ["How many people live in Paris?"],
    "revise": ["Draft: how many live in Paris?"],
    "choose": ["Sample: how many live in Paris?"],
    "choose_by": ["Sample: how many have their home in Paris?"],
    "criteria": ["Draft: how many have their home in Paris?"],
    "fill_in": ["Which city is the largest of France?"],
    "stop": ["Look up Paris without end."],
    "go_on": ["Which city is the largest of France?", "Who is its head?"],
}
_FIELDS = re.compile(r"`\[\[ ## (\w+) ## \]\]`")


def reply(request: Request) -> Reply:
    """Call the tool, fill in the form, or answer."""
    if "[[ ## completed ## ]]" in request.text:
        fields = [name for name in _FIELDS.findall(request.last) if name != "completed"]
        return "\n\n".join(f"[[ ## {name} ## ]]\n{_field(name, request)}" for name in [*fields, "completed"])
    looked = any(message.type == "tool" for message in request.messages)
    if (
        "population" in request.tools
        and request.tool_choice != "none"
        and (not looked or "without end" in request.text)
    ):
        return ToolUse("population", {"city": "Paris"})
    if "City" in request.tools:
        return ToolUse("City", CITY)
    if "GraderResponse" in request.tools or request.schema == "GraderResponse":
        graded = _graded(request.text)
        return graded if request.schema else ToolUse("GraderResponse", graded)
    if request.schema == "Met":
        return {"reason": problem("") or "", "met": _is_met(request.text)}
    if request.schema == "Judgements":
        candidates = re.findall(r"<candidate .*?</candidate", request.last, re.DOTALL)
        return {"judgements": [_judgement(text) for text in candidates]}
    if request.schema == "Judgement":
        return _judgement(request.text)
    return _form(request) if request.schema else _answer(request)


def _form(request: Request) -> Reply:
    properties = request.schemas[request.schema or ""].get("properties", {})
    return CITY if "people" in str(properties) else {"score": _judgement(request.text)["score"]}


def _is_met(text: str) -> bool:
    """Tell whether a text holds an answer that meets the criterion."""
    return f"{PEOPLE} people" in text


def _graded(text: str) -> JsonObject:
    """Grade as deepagents asks for it."""
    passed = _is_met(text)
    criterion: JsonObject = {"name": CRITERION, "passed": passed, **({} if passed else {"gap": problem("")})}
    result = "satisfied" if passed else "needs_revision"
    return {"result": result, "explanation": problem("") or "", "criteria": [criterion]}


def _judgement(text: str) -> dict[str, str | float | bool]:
    return {"reasoning": "Compared.", "score": 0.9 if BEST in text else 0.2, "solved": False}


def _answer(request: Request) -> str:
    if "Draft:" in request.text:
        again = request.attempt or (problem("") or "") in request.text
        return f"{PEOPLE} people." if again else f"{PEOPLE}."
    if "Sample:" in request.text:
        way = request.index + request.attempt
        return BEST if way == 2 else f"About {way + 1} million."
    if "head" in request.last:
        return f"The mayor of {'Paris' if 'Paris' in request.text else 'what'}."
    return f"Paris, with {PEOPLE}."


def _field(name: str, request: Request) -> str:
    """Fill in a field of DSPy's."""
    looked = "observation_0" in request.last and "without end" not in request.last
    fields = {
        "next_thought": "Look it up.",
        "next_tool_name": "finish" if looked else "population",
        "next_tool_args": "{}" if looked else '{"city": "Paris"}',
        "city": json.dumps(CITY),
        "met": str(_is_met(request.last)),
        "score": str(_judgement(request.last)["score"]),
    }
    return fields.get(name) or _answer(request)
