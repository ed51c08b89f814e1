"""Where the steps of a plan come from, and what each of them promises before anybody knows where it leads: how likely
the model holds it to be, or how useful a judge (RAP, section 3.2)."""

import math
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage

from models.calls import request, takes_logprobs
from nodes.candidates import Branch, Candidate, Grade
from nodes.chat import ask, model_of
from nodes.drawing import calls_of, draw
from nodes.memo import at_once
from nodes.policies import Follow
from nodes.step import Step
from nodes.transcript import quoted
from nodes.world_model import WorldModel
from prompts import rap as prompts
from state.searching import RapContext, Usefulness

_LIST_MARK = re.compile(r"^\s*(?:[-*]|\(?\d+[.):])\s+")


class Proposals:
    """The steps that the model proposes, with the likelihood of each where the provider tells it."""

    def __init__(self, step: Step[RapContext], world: WorldModel) -> None:
        self.step, self.world = step, world
        self.model = model_of(step, step.context.model)
        self.lists = step.context.proposals == "list" and not world.whole

    def calls(self, width: int) -> int:
        """One for a list; of single steps as many as `nodes.drawing` says."""
        return 1 if self.lists else calls_of(self.model, width)

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Ask for a list, or for `width` single steps at once."""
        asks = self.step.context.action_reward != "judge" and takes_logprobs(self.model)
        options: dict[str, Any] = {"logprobs": True} if asks else {}
        prompt = self.world.propose(branch.path, width if self.lists else 1)
        replies = await draw(self.step, self.model, prompt, 1 if self.lists else width, **options)
        found = [line for reply in replies for line in self._read(reply)]
        terms = [{"r0": likely} if asks and likely is not None else {} for _, likely in found]
        await follow([Candidate(i, action=text, terms=terms[i]) for i, (text, _) in enumerate(found)])

    def _read(self, reply: AIMessage) -> list[tuple[str, float | None]]:
        if self.world.whole:
            return [(reply.text.strip(), likelihood(_tokens(reply)))]
        found = [(_LIST_MARK.sub("", text).strip(), likely) for text, likely in lines(reply)]
        return found if self.lists else found[:1]

    async def conclude(self, branch: Branch) -> str:
        """Ask for an answer from where the branch stands."""
        return (await request(self.model, self.world.conclude(branch.path), self.step.meter))[0].text


def lines(reply: AIMessage) -> list[tuple[str, float | None]]:
    """The lines of a reply that hold something, each with its likelihood; None where the provider does not tell it."""
    texts = reply.text.split("\n")
    shares: list[list[Any]] = [[] for _ in texts]
    place = 0
    for token in _tokens(reply):
        shares[min(place, len(texts) - 1)].append(token)
        place += str(token.get("token")).count("\n")
    told = [likelihood(share) if place == len(texts) - 1 else None for share in shares]
    return [(text, likely) for text, likely in zip(texts, told, strict=True) if text.strip()]


def likelihood(tokens: Sequence[Any]) -> float | None:
    """The geometric mean of the tokens' probabilities, so that a long step is not less likely than a short one; None if
    they are not known."""
    known = [token.get("logprob") for token in tokens]
    if not known or not all(isinstance(one, int | float) and one == one for one in known):
        return None
    return min(math.exp(sum(known) / len(known)), 1.0)


def _tokens(reply: AIMessage) -> list[Any]:
    told = reply.response_metadata.get("logprobs")
    tokens = told.get("content") if isinstance(told, dict) else None
    return [token for token in tokens or () if isinstance(token, dict)]


class Promise:
    """r0 of steps whose likelihood the provider does not tell: how useful a judge holds them to be, or with
    `action_reward="likelihood"` their share of the samples."""

    def __init__(self, step: Step[RapContext], world: WorldModel) -> None:
        self.step, self.world = step, world

    def calls(self, width: int) -> int:
        """At most one, or one each, as `grading` says."""
        if self.step.context.action_reward == "likelihood":
            return 0
        return 1 if self.step.context.grading == "together" else width

    async def grade(self, branch: Branch, candidate: Candidate) -> Grade | None:
        """Nothing before all are there."""
        return None

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Fill in what is missing."""
        waiting = [candidate for candidate in candidates if "r0" not in candidate.terms]
        if self.step.context.action_reward == "likelihood":
            drawn = sum(candidate.samples for candidate in candidates)
            for candidate in waiting:
                candidate.terms["r0"] = candidate.samples / drawn
        elif self.step.context.grading == "together":
            await self._rate(branch, waiting)
        else:
            await at_once([self._rate(branch, [candidate]) for candidate in waiting])

    async def _rate(self, branch: Branch, waiting: Sequence[Candidate]) -> None:
        if not waiting:
            return
        texts = [quoted("candidate", one.action, number=i) for i, one in enumerate(waiting, 1)]
        situation = self.world.situation(branch.path)
        prompt = prompts.RATE.format_messages(situation=situation, candidates="\n".join(texts))

        def one_each(rated: Usefulness) -> str | None:
            given, wanted = len(rated.scores), len(waiting)
            return None if given == wanted else f"there are {wanted} candidates, but {given} scores"

        context = self.step.context
        rated = await ask(self.step, context.judge_model or context.model, prompt, Usefulness, one_each)
        for candidate, score in zip(waiting, rated.scores, strict=True):
            candidate.terms["r0"] = score
