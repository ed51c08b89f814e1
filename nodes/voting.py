"""Votes: several times a model is shown all candidates at once, and names the best (Tree of Thoughts, section 3)."""

import re
from collections import Counter
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from models.calls import request, takes_n
from nodes.candidates import Branch, Candidate, Grade, trajectory_text
from nodes.chat import ATTEMPTS, model_of
from nodes.memo import at_once
from nodes.step import Step
from nodes.transcript import quoted
from prompts import tree_of_thoughts as prompts
from state.errors import InvalidOutput
from state.searching import TreeOfThoughtsContext

_CHOICE = re.compile(r"best choice is\D*(\d+)", re.IGNORECASE)


class Voting:
    """A candidate is worth its share of the votes. An answer with at least the minimum score of them is solved.

    Args:
        step: The node that asks.
    """

    def __init__(self, step: Step[TreeOfThoughtsContext]) -> None:
        self.step, self.votes = step, step.context.grade_samples
        self.model = model_of(step, step.context.judge_model or step.context.model)

    def calls(self, width: int) -> int:
        """One where the provider takes n, else one a vote."""
        return 1 if takes_n(self.model) else self.votes

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Wait for the others."""
        return None

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Let the model vote. One candidate alone is elected without; it is solved if several samples have come to it.

        Raises:
            InvalidOutput: if in three attempts no vote names a candidate.
            LimitReached, ModelFailed: if there are no votes to be had.
        """
        waiting = [candidate for candidate in candidates if candidate.grade is None]
        votes = await self._vote(branch, waiting) if len(waiting) > 1 else Counter(range(1, len(waiting) + 1))
        for number, candidate in enumerate(waiting, 1):
            share = votes[number] / votes.total()
            agreed = share >= self.step.context.min_score and (len(waiting) > 1 or candidate.samples > 1)
            solved = candidate.answers and candidate.final and agreed
            candidate.grade = Grade(share, solved=solved, terms={"votes": float(votes[number])})

    async def _vote(self, branch: Branch, candidates: Sequence[Candidate]) -> Counter[int]:
        texts = [trajectory_text([*candidate.before, candidate]) for candidate in candidates]
        prompt = prompts.VOTE.format_messages(
            request=branch.request,
            trajectory=quoted("trajectory", trajectory_text(branch.path)),
            candidates="\n".join(quoted("candidate", text, number=i) for i, text in enumerate(texts, 1)),
        )
        for _ in range(ATTEMPTS):
            said = await self._ask(prompt)
            read = [read_vote(text, len(candidates)) for text in said]
            votes = Counter(number for number in read if number)
            self.step.meter.count(parse_failures=read.count(None))
            self.step.emit(
                "voted", votes={str(number): votes[number] for number in sorted(votes)}, invalid=read.count(None)
            )
            if votes:
                return votes
            prompt = [*prompt, AIMessage(said[0]), HumanMessage(prompts.NO_VOTE)]
        raise InvalidOutput(f"no valid vote in {ATTEMPTS} attempts")

    async def _ask(self, prompt: list[BaseMessage]) -> list[str]:
        sizes = [self.votes] if takes_n(self.model) else [1] * self.votes
        replies = await at_once([request(self.model, prompt, self.step.meter, n=size) for size in sizes])
        return [reply.text for batch in replies for reply in batch]


def read_vote(text: str, candidates: int) -> int | None:
    """The number of the candidate that a vote names last, from 1; None if it names none that there is."""
    named = _CHOICE.findall(text)
    number = int(named[-1][:9]) if named else 0
    return number if 1 <= number <= candidates else None
