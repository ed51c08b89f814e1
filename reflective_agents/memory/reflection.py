"""What of a reflection needs no model (Generative Agents, section 4.2): when it is due, and which insights hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from reflective_agents.state.memories import Insights, Memory, new_memory
from reflective_agents.text.words import words

if TYPE_CHECKING:
    from reflective_agents.memory.stream import Pending

THRESHOLD = 150.0
"""Importance of new observations beyond which an agent reflects."""
RECENT = 100
"""Latest memories that the questions are asked about."""
SHOWN = 30
"""Memories retrieved for each question."""


class CheckedInsights(NamedTuple):
    """The insights that hold, as memories, and the texts of those that were refused."""

    insights: list[Memory]
    refused: list[str]


def is_due(pending: "Pending", threshold: float = THRESHOLD) -> bool:
    """Tell whether the importance of what was observed since the last reflection exceeds the threshold."""
    return pending.importance > threshold


def check_insights(reply: Insights, shown: Sequence[Memory], *, key: str, now: float) -> CheckedInsights:
    """Make memories of insights. One is refused if none of the numbers it names was given; a number that was not
    given is left out.

    Args:
        reply: What the model says.
        shown: The memories it was shown, in the order of their numbers, which begin at 1.
        key: What tells this question of this reflection from all others of the agent, so that the same insight gets
            the same id when the work is done again.
        now: Seconds of the agent's clock.
    """
    checked = CheckedInsights([], [])
    for index, insight in enumerate(reply.insights):
        evidence = [shown[number - 1]["id"] for number in insight.evidence if 0 < number <= len(shown)]
        if not evidence:
            checked.refused.append(insight.insight)
            continue
        memory = new_memory(
            insight.insight,
            created=now,
            kind="reflection",
            importance=insight.importance,
            evidence=evidence,
            key=f"{key} {index}",
        )
        checked.insights.append(memory)
    return checked


def merged(insights: Sequence[Memory], existing: Sequence[Memory]) -> list[Memory]:
    """Merge equal insights, with the evidence of all; drop those that are known already.

    Case, punctuation and white space make no difference.
    """
    by_words: dict[str, Memory] = {}
    existing_texts = {normalised(memory["text"]) for memory in existing}
    for insight in insights:
        key = normalised(insight["text"])
        if key in by_words:
            evidence = [*by_words[key]["evidence"], *insight["evidence"]]
            by_words[key] = {**by_words[key], "evidence": list(dict.fromkeys(evidence))}
        elif key not in existing_texts:
            by_words[key] = insight
    return list(by_words.values())


def normalised(text: str) -> str:
    """Normalize a text: case, punctuation and white space do not matter."""
    return " ".join(words(text))
