"""Which memories an answer is given: the facts that hold come first, then what fits best of the rest, each once."""

from collections.abc import Iterable, Mapping, Sequence, Set
from math import ceil
from typing import TYPE_CHECKING

from reflective_agents.memory.reflection import normalised
from reflective_agents.prompts import recall as prompts
from reflective_agents.state.memories import LEAST, Memory
from reflective_agents.text.dates import periods
from reflective_agents.text.stems import query_stems, stems

if TYPE_CHECKING:
    from reflective_agents.memory.stream import Scored

REST = 3
"""A third of the places at least is left to turns and insights, however many facts there are."""
PROFILE = 2
"""The profile takes half of what facts may take, where not all of them fit."""
TAGS = 80
"""Bytes of the tags around a fact in a prompt."""


def choose(
    ranked: "Sequence[Scored]", question: str, most: int, fact_tokens: int, in_thread: set[str], conversation: str
) -> "list[Scored]":
    """Choose what an answer is given of the memories that were retrieved.

    Args:
        ranked: The memories, best first.
        question: What they were retrieved for.
        most: Places there are. Facts that hold may take more; then a third of so many is left for the rest.
        fact_tokens: Most tokens of the facts that come first, one for two bytes; with 0 all is left as it was ranked.
        in_thread: What stands in the thread, normalised.
        conversation: The name of the thread in the memory.
    """
    known = [scored for scored in ranked if not _stands_in_thread(scored.memory, conversation)]
    distinct = _without_repetitions(known, in_thread)
    holding = [scored for scored in distinct if _holds(scored.memory)]
    first = _facts_first(holding, fact_tokens)
    facts: list[Scored] = []
    rest: list[Scored] = []
    for scored in distinct:
        if scored.memory["id"] in first:
            facts.append(scored)
        else:
            rest.append(scored)
    if fact_tokens:
        in_facts = stems([fact.memory["text"] for fact in facts])
        rest = _chatter_last(rest, query_stems(question).difference(*in_facts))
    return facts + best(rest, max(most - len(facts), ceil(most / REST)))


def _stands_in_thread(memory: Memory, conversation: str) -> bool:
    """Tell whether a fact says no more than its turn, which stands in the thread: one with a date does, as that may
    only say 'last week'."""
    dated = memory.get("since") or periods(memory["text"], memory["created"])
    return memory.get("conversation") == conversation and not dated


def _holds(memory: Memory) -> bool:
    return memory["kind"] == "fact" and "until" not in memory


def _facts_first(facts: "Sequence[Scored]", tokens: int) -> set[str]:
    """Select the facts that come first: all while they fit. Beyond that the profile, by importance, has its part, and
    importance and fit decide on what is left."""
    profile = [scored for scored in facts if scored.memory.get("topic") != "other"]
    profile.sort(key=lambda scored: -scored.memory["importance"])
    fitting = sorted(facts, key=lambda scored: -scored.importance - scored.relevance)
    chosen = dict[str, int]()
    _fill(chosen, profile, tokens // PROFILE)
    _fill(chosen, fitting, tokens)
    return {*chosen}


def _fill(chosen: dict[str, int], candidates: "Iterable[Scored]", most: int) -> None:
    """Choose candidates, by their ids, as long as the tokens of all that are chosen stay within a bound."""
    for scored in candidates:
        memory = scored.memory
        cost = (len(memory["text"].encode()) + TAGS) // 2
        if memory["id"] not in chosen and sum(chosen.values()) + cost <= most:
            chosen[memory["id"]] = cost


def _chatter_last(ranked: "Sequence[Scored]", missing: Set[str]) -> "list[Scored]":
    """Put chatter behind all else, but for the first turn of it that holds one of the words that no fact has."""
    chatter = [scored for scored in ranked if _is_chatter(scored.memory)]
    last = {scored.memory["id"] for scored in chatter}
    texts = stems([scored.memory["text"] for scored in chatter])
    for scored, text in zip(chatter, texts, strict=True):
        if not missing.isdisjoint(text):
            last.remove(scored.memory["id"])
            break
    return sorted(ranked, key=lambda scored: scored.memory["id"] in last)


def _is_chatter(memory: Memory) -> bool:
    """Tell whether a memory is a turn in which nothing worth keeping was found; what could not be read is none."""
    is_turn = memory["kind"] == "observation" and memory.get("speaker") in (prompts.USER, prompts.ASSISTANT)
    return is_turn and memory["importance"] <= LEAST


def _without_repetitions(ranked: "Sequence[Scored]", in_thread: set[str]) -> "list[Scored]":
    """Drop repetitions: a fact replaces the turn it was drawn from, at the rank of whichever fits better. What another
    supersedes comes behind that."""
    # Turned round here and below, so that of several the one that fits best is kept.
    fact_of: dict[str, Scored] = {}
    later: dict[str, Scored] = {}
    for scored in reversed(ranked):
        if scored.memory["kind"] == "fact":
            fact_of.update(dict.fromkeys(scored.memory["evidence"], scored))
        later.update(dict.fromkeys(scored.memory.get("supersedes", ()), scored))
    by_text: dict[str, Scored] = {}
    for scored in ranked:
        for version in _versions(fact_of.get(scored.memory["id"], scored), later):
            text = normalised(version.memory["text"])
            if text not in in_thread:
                by_text.setdefault(text, version)
    return list(by_text.values())


def _versions(scored: "Scored", later: "Mapping[str, Scored]") -> "list[Scored]":
    """Return what supersedes a memory, the latest first, and the memory itself."""
    versions = [scored]
    # No circle, whatever the memories name.
    while (after := later.get(versions[-1].memory["id"])) and after not in versions:
        versions.append(after)
    return versions[::-1]


def best(ranked: "Sequence[Scored]", most: int) -> "list[Scored]":
    """Select the best. What the assistant said may be chatter, and takes a third of the places at most."""
    chosen: list[Scored] = []
    answers = 0
    for scored in ranked:
        if is_evidence(scored.memory):
            chosen.append(scored)
        elif answers < max(1, most // 3):
            chosen.append(scored)
            answers += 1
    return chosen[:most]


def is_evidence(memory: Memory) -> bool:
    """Tell whether an insight may rest on a memory: what the assistant has said is none."""
    return memory.get("speaker") != prompts.ASSISTANT
