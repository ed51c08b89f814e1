"""Proposals that say how sure they are (Tree of Thoughts, section 4.3)."""

import re
from collections import Counter
from collections.abc import Sequence

from reflective_agents.prompts import tree_of_thoughts as prompts
from reflective_agents.text.labels import bare
from reflective_agents.tree_search.candidates import Branch, Candidate
from reflective_agents.tree_search.policy import Follow
from reflective_agents.tree_search.task_policies import ListProposals

CONFIDENCE = {"certain": 10, "high": 5, "medium": 2, "low": 1}
"""The weight of a word, in tenths, so that sums are exact."""
# The brackets may be full-width, as in Chinese, and the word emphasised.
_RANKED = re.compile(rf"(.*?)(?<!\s)\s*+[(（]\s*+[*_`]*+({'|'.join(CONFIDENCE)})[*_`]*+\s*+[)）]", re.IGNORECASE)


class RankedProposals(ListProposals):
    """Asks for lists of next steps with confidences: the children are ordered by the sum over all lists."""

    template = prompts.RANKED

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Ask for the lists at once, and hand the steps on together, the surest first."""

        async def ranked(lines: Sequence[Candidate]) -> None:
            await follow(self._ranked(lines))

        await super().sample(branch, width, ranked)

    def _ranked(self, lines: Sequence[Candidate]) -> list[Candidate]:
        confidences = Counter[str]()
        first: dict[str, str] = {}
        for line in lines:
            action, confidence = read_confidence(line.action)
            key = self.environment.canonical(action)
            first.setdefault(key, action)
            confidences[key] += confidence
        candidates: list[Candidate] = []
        for key, confidence in confidences.most_common():
            terms = {"confidence": confidence / 10}
            candidates.append(Candidate(len(candidates), action=first[key], terms=terms))
        return candidates


def read_confidence(line: str) -> tuple[str, int]:
    """Read a proposed action and its confidence in tenths; without a word for it, as little as there is."""
    match = _RANKED.match(line)
    return (bare(match[1]), CONFIDENCE[match[2].lower()]) if match else (line, CONFIDENCE["low"])
