"""Which answer `graphs.aggregation` returns: an accepted one, the best verified of any round, or the last round's."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from reflective_agents.graphs._aggregation.candidates import (
    AggregationState,
    Candidate,
    answer_text,
    found_text,
    round_of,
)
from reflective_agents.graphs.chain_of_thought import voting
from reflective_agents.nodes.acting.agent import environment_of
from reflective_agents.nodes.asking.pairs import rank_by_pairs
from reflective_agents.nodes.asking.task_prompt import short_task_prompt
from reflective_agents.nodes.asking.transcript import quoted, request_text
from reflective_agents.nodes.step import Step
from reflective_agents.state.settings.aggregation import AggregationContext


class Choice(NamedTuple):
    """The answer that is returned, and why."""

    candidate: Candidate
    why: str


async def choose(state: AggregationState, step: Step[AggregationContext]) -> Choice | None:
    """Choose the answer; None if there is none.

    One that was accepted is it. Else those of the highest score are in the running, of whatever round; where nothing
    gives scores, those of the last round. Among these votes decide, or comparisons by pairs.
    """
    finalists = in_the_running(state, step.context)
    if not finalists:
        return None
    ranked = by_votes(finalists)
    winner, votes = ranked[0]
    number = finalists[0]["round"]
    if winner["accepted"]:
        return Choice(winner, f"an answer of round {number} is accepted")
    if step.context.choose == "pairs" and len(ranked) > 1:
        return await by_pairs(state, step, [candidate for candidate, _ in ranked])
    if len(finalists) == 1:
        return Choice(winner, f"it is the answer of round {number}")
    agreed = f"{votes} of {len(finalists)}" if votes > 1 else f"no two of {len(finalists)}"
    return Choice(winner, f"{agreed} answers of round {number} agree")


def in_the_running(state: AggregationState, context: AggregationContext) -> list[Candidate]:
    """Return the accepted answers, else those of the highest score, of whatever round. Where none has a score, return
    those of the last round, and as many before it as are missing there. The last round comes first."""
    answered = [candidate for candidate in state["candidates"] if candidate["answer"]]
    answered.sort(key=lambda candidate: -candidate["round"])
    scored = [candidate for candidate in answered if candidate["score"] is not None]
    if scored:
        best = max(map(rank, scored))
        return [candidate for candidate in scored if rank(candidate) == best]
    if context.last == "single" and round_of(state) == context.rounds:
        last = [candidate for candidate in answered if candidate["round"] == round_of(state)]
        if last:
            return last
    return answered[: context.population]


def rank(candidate: Candidate) -> tuple[bool, float]:
    """Return what makes one answer better than another."""
    return candidate["accepted"], -1.0 if candidate["score"] is None else candidate["score"]


def by_votes(finalists: Sequence[Candidate]) -> list[tuple[Candidate, int]]:
    """Return the distinct answers with their votes, most votes first, of equals the first."""
    votes = Counter[str]()
    first: dict[str, Candidate] = {}
    for voter in voting(finalists):
        normal = voter["normal"] or voter["answer"]
        votes[normal] += 1
        first.setdefault(normal, voter)
    return [(first[normal], count) for normal, count in votes.most_common()]


async def by_pairs(state: AggregationState, step: Step[AggregationContext], ranked: Sequence[Candidate]) -> Choice:
    """Choose by comparisons; where none can be had, the answer that has most votes."""
    environment = await environment_of(step.context)
    task = ""
    request = request_text(state["messages"])
    if environment:
        task = short_task_prompt(environment, examples=False)
        request = quoted("request", state["request"])
    rivals = ranked[: step.context.comparisons + 1]
    texts = [answer_text(rival, is_open=environment is None) for rival in rivals]
    ranking = await rank_by_pairs(
        step,
        step.context.judge_model or step.context.model,
        texts,
        step.context.comparisons,
        task=task,
        request=request,
        material=found_text(state),
    )
    winner = ranked[ranking.best]
    return Choice(winner, f"of {len(ranked)} answers of round {winner['round']}, {ranking.reason}")
