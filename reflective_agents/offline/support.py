"""How the offline model holds an answer against its sources: what stands there word by word is supported."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from reflective_agents.offline.grading import SUPPORTED, grade
from reflective_agents.offline.reading import Reading
from reflective_agents.offline.tags import read_tags
from reflective_agents.offline.writing import MISSING, NOTE
from reflective_agents.state.json_types import JsonObject
from reflective_agents.text.extract import Passage, sentences, terms

_REMARKS = (MISSING.strip(), NOTE)
"""What this model says of its own answers."""


def hold_against_sources(form: str, reading: Reading) -> JsonObject | None:
    """Fill in the form for the check of an answer, or for its revision; None if the form is neither of these.

    Args:
        form: The name of the form.
        reading: The conversation, whose last message holds the passages and the sentences.
    """
    fill = {"SupportCheck": _check, "Revision": _revision}.get(form)
    return fill(reading) if fill else None


def _check(reading: Reading) -> JsonObject:
    passages = {part.attributes.get("number", ""): part.text for part in read_tags(reading.scene, ["passage"])}
    checks, facts = list[JsonObject](), list[str]()
    for part in read_tags(reading.scene, ["sentence"]):
        if {"number", "cites"} <= part.attributes.keys():
            marks = part.attributes["cites"].split(", ")
            cited = [passages[mark] for mark in marks if mark in passages]
            checks.append(_checked(int(part.attributes["number"]), part.text, cited))
            if checks[-1]["fact"]:
                facts.append(part.text)
    evidence = tuple(Passage("", mark, text) for mark, text in passages.items())
    answered = _answered(replace(reading, passages=evidence), " ".join(facts))
    return {"sentences": checks, "answered": answered}


def _checked(number: int, text: str, passages: Sequence[str]) -> JsonObject:
    if any(remark in text for remark in _REMARKS):
        return {"number": number, "fact": False, "words": "", "support": "none"}
    if any(_flat(text) in _flat(passage) for passage in passages):
        return {"number": number, "fact": True, "words": text, "support": "full"}
    stems = set(terms(text))
    for source in chain.from_iterable(map(sentences, passages)):
        if _is_near(stems, source):
            return {"number": number, "fact": True, "words": source, "support": "part"}
    return {"number": number, "fact": True, "words": "", "support": "none"}


def _is_near(stems: set[str], source: str) -> bool:
    return bool(stems) and len(stems & set(terms(source))) >= SUPPORTED * len(stems)


def _flat(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _answered(reading: Reading, facts: str) -> str:
    if not facts:
        return "no"
    return "partly" if grade(reading, facts).rare else "yes"


def _revision(reading: Reading) -> JsonObject:
    """Leave out what is not supported: this model has no other words for it."""
    wrong = re.findall(r"^(\d+): ", reading.scene.partition("<checked>")[2], re.MULTILINE)
    return {"sentences": [{"number": int(number), "text": ""} for number in wrong]}
