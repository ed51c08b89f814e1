"""Values: how the states of a search are graded where no environment has rewarded them."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from models.calls import request, takes_n
from nodes.candidates import Branch, Candidate, Grade, told, trajectory_text
from nodes.chat import ask, model_of
from nodes.memo import at_once, each_to_its_end
from nodes.step import Step
from nodes.transcript import quoted
from prompts import lats as prompts
from state.errors import LimitReached
from state.schemas import Judgement, Judgements
from state.searching import TreeContext


class Value(Protocol):
    """How a candidate is graded."""

    def calls(self, width: int) -> int:
        """How many calls it takes to grade so many candidates."""
        ...

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Grade a candidate on its own, as soon as it has acted; None to leave it to `compare`."""
        ...

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Complete the grades when all siblings are there."""
        ...


class Judging:
    """A judge reads the whole trajectory and gives a score with a critique; each candidate in a call of its own."""

    def __init__(self, step: Step[TreeContext]) -> None:
        self.step = step

    def calls(self, width: int) -> int:
        """One each."""
        return width

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Ask the judge."""
        spare(self.step, branch, candidate)
        prompt = prompts.JUDGE.format_messages(
            request=branch.request,
            lessons=told(branch),
            trajectory=quoted("trajectory", trajectory_text([*branch.path, *candidate.before, candidate])),
        )
        return self.as_grade(await ask(self.step, self.model, prompt, Judgement), candidate)

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Nothing more."""

    @property
    def model(self) -> Any:
        """The judge's model."""
        return self.step.context.judge_model or self.step.context.model

    def as_grade(self, judgement: Judgement, candidate: Candidate) -> Grade:
        """A judgement as a grade: solved is an answer by the judge's word together with the minimum score."""
        ended = candidate.answers and candidate.final
        solved = judgement.solved and ended and judgement.score >= self.step.context.min_score
        return Grade(judgement.score, judgement.reasoning, solved)


JUDGEMENT_TOKENS = 150
"""What one judgement takes of an answer."""


class JudgingTogether(Judging):
    """A judge reads all siblings in one call, or in as few as their judgements have room in."""

    def calls(self, width: int) -> int:
        """One for as many as an answer has room for."""
        return -(-width // max(self.step.context.max_answer_tokens // JUDGEMENT_TOKENS, 1))

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Wait for the siblings."""
        return None

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Ask the judge for one judgement each."""
        waiting = [candidate for candidate in candidates if candidate.grade is None]
        if not waiting:
            return
        if not any(candidate.answers for candidate in waiting):
            spare(self.step, branch, waiting[0])
        size = -(-len(waiting) // self.calls(len(waiting)))
        parts = [waiting[first : first + size] for first in range(0, len(waiting), size)]
        await each_to_its_end([self._judge(branch, part) for part in parts])

    async def _judge(self, branch: Branch, waiting: Sequence[Candidate]) -> None:
        texts = [quoted("candidate", trajectory_text([*c.before, c]), number=i) for i, c in enumerate(waiting, 1)]
        prompt = prompts.JUDGE_TOGETHER.format_messages(
            request=branch.request,
            trajectory=quoted("trajectory", trajectory_text(branch.path)),
            lessons=told(branch),
            candidates="\n".join(texts),
        )

        def one_each(judgements: Judgements) -> str | None:
            given, wanted = len(judgements.judgements), len(waiting)
            return None if given == wanted else f"there are {wanted} candidates, but {given} judgements"

        judged = await ask(self.step, self.model, prompt, Judgements, one_each)
        for candidate, judgement in zip(waiting, judged.judgements, strict=True):
            candidate.grade = self.as_grade(judgement, candidate)


LABELS = {"sure": 20.0, "likely": 1.0, "impossible": 0.001}
"""What a label is worth (Tree of Thoughts, section 4.1)."""


class Labelling:
    """A state is called sure, likely or impossible, several times; it is worth the sum of the labels (Tree of
    Thoughts), as a share of the most that there could be. A reply without a label adds nothing, and is counted.

    Args:
        step: The node that asks.
        show: What is shown of a candidate's state.
    """

    def __init__(self, step: Step[Any], show: Callable[[Branch, Candidate], str]) -> None:
        self.step, self.show = step, show
        self.model = model_of(step, step.context.judge_model or step.context.model)

    def calls(self, width: int) -> int:
        """One each where the provider takes n, else one a label."""
        return width * (1 if takes_n(self.model) else self.step.context.grade_samples)

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Ask for the labels at once."""
        spare(self.step, branch, candidate)
        samples = self.step.context.grade_samples
        prompt = prompts.LABEL.format_messages(state=quoted("task", self.show(branch, candidate)), lessons=told(branch))
        sizes = [samples] if takes_n(self.model) else [1] * samples
        replies = await at_once([request(self.model, prompt, self.step.meter, n=size) for size in sizes])
        labels = [read_label(reply.text) for batch in replies for reply in batch]
        self.step.meter.count(parse_failures=labels.count(""))
        return labelled(labels)

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Nothing more."""


def labelled(labels: Sequence[str]) -> Grade:
    """The grade that labels come to. They are summed in one order, or equal states would differ in the last digit."""
    counts = Counter(labels)
    total = sum(worth * counts[label] for label, worth in sorted(LABELS.items()) if counts[label])
    said = {label: float(count) for label, count in sorted(counts.items()) if label}
    return Grade(total / (LABELS["sure"] * max(len(labels), 1)), terms=said)


def read_label(text: str) -> str:
    """The label on the last line of a reply; empty if there is none."""
    last = text.strip().rpartition("\n")[2].casefold()
    return next((label for label in LABELS if label in last), "")


class Consistent:
    """Mixes another value with self-consistency: V = lambda * judge + (1 - lambda) * share of the samples that propose
    the same (LATS, equation 2)."""

    def __init__(self, inner: Value, weight: float) -> None:
        self.inner, self.weight = inner, weight

    def calls(self, width: int) -> int:
        """Those of the other value, which is not asked where it does not count."""
        return self.inner.calls(width) if self.weight else 0

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Ask the other value."""
        return await self.inner.grade(branch, candidate) if self.weight else Grade(0.0)

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Mix."""
        await self.inner.compare(branch, candidates)
        drawn = sum(candidate.samples for candidate in candidates)
        for candidate in candidates:
            if candidate.grade is None or candidate.reward is not None:
                continue
            judge, share = candidate.grade.score, candidate.samples / drawn
            candidate.grade.score = self.weight * judge + (1 - self.weight) * share
            candidate.grade.terms |= {"judge": judge, "consistency": share}


class OfAnswers:
    """Asks another value of answers only; a step on the way there is not graded."""

    def __init__(self, inner: Value) -> None:
        self.inner = inner

    def calls(self, width: int) -> int:
        """At most those of the other value."""
        return self.inner.calls(width)

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Grade an answer."""
        return await self.inner.grade(branch, candidate) if candidate.answers else None

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Complete the grades of the answers."""
        await self.inner.compare(branch, [candidate for candidate in candidates if candidate.answers])


def spare(step: Step[TreeContext], branch: Branch, candidate: Candidate) -> None:
    """Refuse to spend the call that is kept for an answer on a step that is none.

    Raises:
        LimitReached: if there is no other.
    """
    if not candidate.answers and step.meter.calls_left <= branch.keep:
        most = step.context.max_model_calls
        raise LimitReached(f"max_model_calls={most} reached, but for the call that is kept for the answer")
