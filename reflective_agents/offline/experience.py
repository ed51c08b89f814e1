"""How the offline model learns: it draws what the last critique of a run says, and it applies what shares most of its
words with the request. It judges neither."""

import re
from collections.abc import Callable

from reflective_agents.offline.reading import Reading
from reflective_agents.offline.tags import read_tags
from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.extract import terms

_CRITIQUE = re.compile(r"^(?:critique|reflection|missing): (.+)$", re.MULTILINE)
SHARED = 0.5
"""Share of the words of a condition that stand in the request where it applies."""
LONGEST = 300
"""Characters of a text that is drawn."""


def learn(form: str, reading: Reading) -> JsonObject | None:
    """Fill in the form for which lessons apply, or for what a run has taught; None if the form is neither of these.

    Args:
        form: The name of the form.
        reading: The conversation, whose last message holds the request and the lessons.
    """
    fill: Callable[[Reading], JsonObject] | None = {"Applying": _applying, "Drawn": _drawn}.get(form)
    return fill(reading) if fill else None


def _request(reading: Reading) -> str:
    return next((part.text for part in read_tags(reading.scene, ["request"])), "")


def _applying(reading: Reading) -> JsonObject:
    requested = set(terms(_request(reading)))
    applies: list[int] = []
    for part in read_tags(reading.scene, ["lesson"]):
        number = part.attributes.get("number", "")
        condition = set(terms(part.text.partition(":")[2]))
        if number.isdecimal() and condition and len(condition & requested) >= SHARED * len(condition):
            applies.append(int(number))
    return {"applies": applies}


def _drawn(reading: Reading) -> JsonObject:
    critiques, request = _CRITIQUE.findall(reading.scene), " ".join(_request(reading).split())[:LONGEST]
    if not critiques or not request:
        return {"items": [], "used": []}
    advice = critiques[-1][:LONGEST]
    item: JsonObject = {"title": advice[:60], "applies_when": request, "advice": advice, "evidence": "a critique"}
    return {"items": [{**item, "kind": "failure"}], "used": []}
