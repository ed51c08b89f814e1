"""What code measures of an answer by data: its length, its language, a pattern, a JSON schema."""

import json
from collections.abc import Iterator

from reflective_agents.models.language import is_in
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.finding import Case, Finding, NoVerdict, passes
from reflective_agents.state.answer_schema import type_faults
from reflective_agents.state.context import Context
from reflective_agents.state.verifier_forms import Language, Length, Pattern, Schema
from reflective_agents.text.words import count_words
from reflective_agents.tools.schema_faults import schema_faults

FEW = 10
"""Words of which the language need not be told."""


async def length(_: Step[Context], verifier: Length, case: Case) -> Finding:
    """Hold the length of an answer against its bounds."""
    words, characters = count_words(case.answer), len(case.answer)
    problems = [
        *_outside(words, "words", verifier.min_words, verifier.max_words),
        *_outside(characters, "characters", verifier.min_characters, verifier.max_characters),
    ]
    return passes("\n".join(problems))


def _outside(count: int, unit: str, least: int | None, most: int | None) -> Iterator[str]:
    """Say which bounds of an answer's length a count does not keep."""
    if least is not None and count < least:
        yield f"The answer has {count} {unit}; at least {least} are needed."
    if most is not None and count > most:
        yield f"The answer has {count} {unit}; at most {most} are allowed."


async def language(_: Step[Context], verifier: Language, case: Case) -> Finding:
    """Tell the language of an answer by its script or its small words. A few words that may be of any language, such as
    names and numbers, are accepted.

    Raises:
        NoVerdict: if these do not tell the language of a longer text.
    """
    found = is_in(case.answer, verifier.language)
    if found is None and count_words(case.answer) > FEW:
        raise NoVerdict("its language cannot be told")
    return passes(f"The answer is in another language: write it in {verifier.language}." if found is False else "")


async def pattern(_: Step[Context], verifier: Pattern, case: Case) -> Finding:
    """Look for a pattern, in linear time."""
    faults = await schema_faults({"type": "string", "pattern": verifier.pattern}, case.answer)
    return passes(f"Nothing in the answer matches the pattern {verifier.pattern}" if faults else "")


async def schema(_: Step[Context], verifier: Schema, case: Case) -> Finding:
    """Hold an answer, which has to be a JSON object and nothing else, against a schema."""
    try:
        value = json.loads(case.answer, parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return passes("The answer is not a JSON object alone.")
    return passes("; ".join(await schema_faults(verifier.form, value)) or type_faults(verifier.form, value))


def _refuse(constant: str) -> None:
    """Refuse NaN and Infinity, which Python reads, and JSON does not have."""
    raise ValueError(constant)
