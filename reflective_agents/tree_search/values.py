"""Values: they grade the states of a tree search that no environment has rewarded."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import ceil
from typing import TypeVar

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage
from pydantic import BaseModel

from reflective_agents.models.context_window import holds
from reflective_agents.nodes.asking.chat import ask, model_of
from reflective_agents.nodes.asking.sampling import calls_for, sample
from reflective_agents.nodes.asking.transcript import around
from reflective_agents.nodes.evidence.sources import without_repeats
from reflective_agents.nodes.memo import each_to_its_end
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers import reward
from reflective_agents.nodes.verifiers.finding import NoVerdict
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.context import Model
from reflective_agents.state.errors import LimitReached, TooLong
from reflective_agents.state.families import TreeContext
from reflective_agents.state.outcome import accepts
from reflective_agents.state.schemas import Judgement, Judgements
from reflective_agents.state.tree import TreeNode
from reflective_agents.state.verifier_forms import Reward
from reflective_agents.tree_search.candidates import Branch, Candidate, Grade, trajectory_text, words_of_step
from reflective_agents.tree_search.lessons import lessons_to_judge

T = TypeVar("T", bound=BaseModel)
Entry = TypeVar("Entry")


class Value(ABC):
    """Grades candidates: each on its own in `grade`, or all siblings in `compare`."""

    @abstractmethod
    def calls(self, width: int) -> int:
        """Return the most model calls that it takes to grade `width` candidates."""

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Grade a candidate on its own, as soon as it has acted; None to leave it to `compare`."""
        return None

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Complete the grades once all siblings are there."""
        return None


class Judge(Value):
    """A model that reads whole trajectories and gives each a score with a critique.

    Args:
        step: The step of the graph, with the settings and the meter.
        task: The description of the task for the judge; empty for an open question.
        together: Whether siblings are judged in one call, or in as few as fit into the judge's answer.
        answers_only: Whether a step on the way to an answer gets no grade.
        rubric: The criteria and the scale, instead of the usual ones.
    """

    def __init__(
        self,
        step: Step[TreeContext],
        task: str,
        *,
        together: bool = False,
        answers_only: bool = False,
        rubric: str | None = None,
    ) -> None:
        self.step, self.task, self.together, self.answers_only = step, task, together, answers_only
        self.rubric = rubric or (prompts.TASK_RUBRIC if task else prompts.RUBRIC)

    @property
    def model(self) -> Model:
        """The judge's model."""
        return self.step.context.judge_model or self.step.context.model

    def calls(self, width: int) -> int:
        """Count the calls: one each, or one for as many judgements as fit into an answer."""
        if not self.together:
            return width
        in_one_answer = max(self.step.context.max_answer_tokens // JUDGEMENT_TOKENS, 1)
        return ceil(width / in_one_answer)

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Judge a candidate, unless siblings are judged together."""
        if self.together or (self.answers_only and not candidate.answers):
            return None
        self.reserve_call(branch, candidate)
        prompt = prompts.JUDGE.format_messages(
            task=self.task,
            rubric=self.rubric,
            request=branch.request,
            lessons=lessons_to_judge(branch),
            trajectory=around("trajectory", trajectory_text([*branch.path, *candidate.before, candidate])),
        )
        return self._as_grade(await ask(self.step, self.model, prompt, Judgement, judging=True), candidate)

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Judge siblings together that have no grade yet."""
        judged = [candidate for candidate in candidates if candidate.answers or not self.answers_only]
        waiting = [candidate for candidate in judged if candidate.grade is None]
        if not waiting or not self.together:
            return
        if not any(candidate.answers for candidate in waiting):
            self.reserve_call(branch, waiting[0])
        size = ceil(len(waiting) / self.calls(len(waiting)))
        parts = [waiting[first : first + size] for first in range(0, len(waiting), size)]
        await each_to_its_end([self._judge_together(branch, part) for part in parts])

    async def _judge_together(self, branch: Branch, waiting: Sequence[Candidate]) -> None:
        """Judge siblings in one call, or in halves, where the model's context does not hold them all."""
        half = len(waiting) // 2
        schema = Judgements.of(len(waiting))
        prompt = self._prompt_together(branch, waiting)
        try:
            if half and not holds(model_of(self.step, self.model), prompt, self.step.meter):
                raise TooLong("the context does not hold all siblings")
            judgements = await self.ask_each(prompt, schema, lambda out: out.judgements, len(waiting), "judgements")
        except TooLong:
            if not half:
                raise
            halves = (waiting[:half], waiting[half:])
            await each_to_its_end([self._judge_together(branch, part) for part in halves])
            return
        for candidate, judgement in zip(waiting, judgements, strict=True):
            candidate.grade = self._as_grade(judgement, candidate)

    def _prompt_together(self, branch: Branch, waiting: Sequence[Candidate]) -> list[BaseMessage]:
        alone = {"what": prompts.ONLY_CANDIDATE} if len(waiting) == 1 else {}
        return prompts.JUDGE_TOGETHER.partial(**alone).format_messages(
            task=self.task,
            rubric=self.rubric,
            request=branch.request,
            trajectory=around("trajectory", trajectory_text(branch.path, goes_on=True) or prompts.NOTHING_DONE),
            lessons=lessons_to_judge(branch),
            candidates=candidates_text(waiting),
        )

    async def ask_each(
        self, prompt: list[BaseMessage], schema: type[T], entries: Callable[[T], Sequence[Entry]], count: int, noun: str
    ) -> Sequence[Entry]:
        """Ask for structured output with one entry for each of `count` candidates. `entries` returns those of an
        output; `noun` is their name for the model."""

        def check_count(output: T) -> str | None:
            listed = len(entries(output))
            return None if listed == count else f"there are {count} candidates, but {listed} {noun}"

        return entries(await ask(self.step, self.model, prompt, schema, check_count, judging=True))

    async def sample(self, prompt: list[BaseMessage], count: int) -> list[str]:
        """Ask the same `count` times, and return the texts."""
        replies = await sample(self.step, model_of(self.step, self.model), prompt, count, judging=True)
        return [reply.text for reply in replies]

    def calls_for(self, samples: int) -> int:
        """Return how many model calls so many samples take."""
        return calls_for(model_of(self.step, self.model), samples)

    def reserve_call(self, branch: Branch, candidate: Candidate) -> None:
        """Keep the calls that are reserved for an answer from being spent on a candidate that is none.

        Raises:
            LimitReached: if no other call is left.
        """
        if not candidate.answers and self.step.meter.calls_left <= branch.reserved_calls:
            raise LimitReached(self.step.meter.limit("max_model_calls", next_cost=1 + branch.reserved_calls))

    def _as_grade(self, judgement: Judgement, candidate: Candidate) -> Grade:
        """Grade a candidate; an answer is solved if the judge says so and its score reaches the minimum."""
        ended = candidate.answers and candidate.final
        accepted = accepts(judgement.solved, judgement.score, self.step.context.min_score)
        solved = ended and accepted and not candidate.unfounded
        return Grade(judgement.score, judgement.reasoning, solved)


class StepReward(Value):
    """A process reward that grades the steps on the way to an answer; another value grades the rest, and the steps of
    which the reward model says nothing.

    Args:
        step: The step of the graph, with the settings and the meter.
        reward: The reward model.
        value: The other value.
    """

    def __init__(self, step: Step[TreeContext], reward: Reward, value: Value) -> None:
        self.step, self.reward, self.value = step, reward, value

    def calls(self, width: int) -> int:
        """Count the calls of the other value, which may have to grade all."""
        return self.value.calls(width)

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Score the last of the steps up to here."""
        if candidate.final or candidate.done:
            return await self.value.grade(branch, candidate)
        nodes = [*branch.path, *candidate.before, candidate.as_node("", None)]
        steps = list(filter(None, map(words_of_step, nodes)))
        try:
            score = await reward.score(self.step, self.reward, branch.conversation, steps)
        except NoVerdict as error:
            missing = f"the reward model gives no verdict: {error}"
            self.step.emit("verified", by="verifiers", score=None, missing=missing)
            return await self.value.grade(branch, candidate)
        return Grade(score, terms={"process": score})

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Let the other value grade what has no grade."""
        await self.value.compare(branch, candidates)


JUDGEMENT_TOKENS = 150
"""Tokens of one judgement in an answer."""


def candidates_text(candidates: Sequence[Candidate]) -> str:
    """Return candidates as quoted text, numbered from 1, each with the steps that lead to it. A result that several of
    them have found stands with the first."""
    seen: dict[tuple[str, str], str] = {}
    texts: list[str] = []
    for number, candidate in enumerate(candidates, 1):
        nodes = [*candidate.before, candidate.as_node("", None)]
        steps = [_without_repeats(node, seen, f"candidate {number}") for node in nodes]
        texts.append(around("candidate", trajectory_text(steps), number=number))
    return "\n".join(texts)


def _without_repeats(node: TreeNode, seen: dict[tuple[str, str], str], name: str) -> TreeNode:
    messages: list[AnyMessage] = []
    for message in node["messages"]:
        if isinstance(message, ToolMessage):
            message = message.model_copy(update={"content": without_repeats(message.text, seen, name)})
        messages.append(message)
    return {**node, "messages": messages}
