"""Votes: several times a model is shown all candidates at once, and names the best (Tree of Thoughts, section 3)."""

from collections import Counter
from collections.abc import Sequence

from langchain_core.messages import AIMessage, HumanMessage

from reflective_agents.nodes.asking.chat import ATTEMPTS
from reflective_agents.nodes.asking.transcript import around
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import lats as lats_prompts
from reflective_agents.prompts import tree_of_thoughts as prompts
from reflective_agents.state.errors import InvalidOutput
from reflective_agents.state.families import TreeContext
from reflective_agents.state.outcome import accepts
from reflective_agents.text.labels import choice_in
from reflective_agents.tree_search.candidates import Branch, Candidate, Grade, trajectory_text
from reflective_agents.tree_search.values import Judge, candidates_text


class VoteJudge(Judge):
    """A judge that votes several times: the score of a candidate is its share of the votes. An answer with at least the
    minimum score of them is solved.

    Args:
        step: The node that asks.
        task: What the voters are told of the task.
        votes: How many votes are held.
    """

    def __init__(self, step: Step[TreeContext], task: str, votes: int) -> None:
        super().__init__(step, task, together=True)
        self.votes = votes

    def calls(self, width: int) -> int:
        """Count the calls: one where the provider takes n, else one per vote."""
        return self.calls_for(self.votes)

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Let the model vote. One candidate alone is elected without; if it is an answer, the judge has to accept it.

        Raises:
            InvalidOutput: if in three attempts no vote names a candidate.
            LimitReached, ModelFailed: if there are no votes to be had.
        """
        waiting = [candidate for candidate in candidates if candidate.grade is None]
        if len(waiting) == 1 and waiting[0].answers and waiting[0].final:
            return await super().compare(branch, waiting)
        votes = await self._vote(branch, waiting) if len(waiting) > 1 else Counter({1: 1})
        for number, candidate in enumerate(waiting, 1):
            share = votes[number] / votes.total()
            agreed = accepts(True, share, self.step.context.min_score) and not candidate.unfounded
            solved = candidate.answers and candidate.final and agreed
            candidate.grade = Grade(share, solved=solved, terms={"votes": float(votes[number])})

    async def _vote(self, branch: Branch, candidates: Sequence[Candidate]) -> Counter[int]:
        prompt = prompts.VOTE.format_messages(
            task=self.task,
            request=branch.request,
            trajectory=around("trajectory", trajectory_text(branch.path, goes_on=True) or lats_prompts.NOTHING_DONE),
            candidates=candidates_text(candidates),
        )
        for _ in range(ATTEMPTS):
            replies = await self.sample(prompt, self.votes)
            numbers = [read_vote(text, len(candidates)) for text in replies]
            votes = Counter(number for number in numbers if number)
            self.step.meter.count(parse_failures=numbers.count(None))
            by_number = {str(number): votes[number] for number in sorted(votes)}
            self.step.emit("voted", votes=by_number, invalid=numbers.count(None))
            if votes:
                return votes
            prompt = [*prompt, AIMessage(replies[0]), HumanMessage(prompts.NO_VOTE)]
        raise InvalidOutput(f"no valid vote in {ATTEMPTS} attempts")


def read_vote(text: str, candidates: int) -> int | None:
    """Read the number of the candidate that a vote names last, from 1; None if it names none that there is."""
    number = choice_in(text)
    return number if number in range(1, candidates + 1) else None
