"""How the offline model holds an answer against its sources: what stands there word by word is supported."""

import re
from collections.abc import Sequence
from dataclasses import replace

from reflective_agents.offline.grading import SUPPORTED, grade
from reflective_agents.offline.reading import Reading
from reflective_agents.offline.tags import Tagged, read_tags
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
    return {"SupportCheck": _check, "Revision": _revision}.get(form, lambda _: None)(reading)


def _check(reading: Reading) -> JsonObject:
    passages = {part.attributes.get("number", ""): part.text for part in read_tags(reading.scene, ["passage"])}
    found = [part for part in read_tags(reading.scene, ["sentence"]) if {"number", "cites"} <= part.attributes.keys()]
    checks = [
        _checked(
            int(part.attributes["number"]), part.text, [passages[mark] for mark in _cited(part) if mark in passages]
        )
        for part in found
    ]
    evidence = tuple(Passage("", mark, text) for mark, text in passages.items())
    facts = " ".join(part.text for part, check in zip(found, checks, strict=True) if check["fact"])
    return {"sentences": checks, "answered": _answered(replace(reading, passages=evidence), facts)}


def _cited(sentence: Tagged) -> list[str]:
    return sentence.attributes["cites"].split(", ")


def _checked(number: int, text: str, passages: Sequence[str]) -> JsonObject:
    if any(remark in text for remark in _REMARKS):
        return {"number": number, "fact": False, "words": "", "support": "none"}
    if any(_flat(text) in _flat(passage) for passage in passages):
        return {"number": number, "fact": True, "words": text, "support": "full"}
    stems = set(terms(text))
    shared = [source for passage in passages for source in sentences(passage) if _is_near(stems, source)]
    return {"number": number, "fact": True, "words": " ... ".join(shared[:1]), "support": "part" if shared else "none"}


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
