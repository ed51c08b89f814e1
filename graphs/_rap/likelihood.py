"""Where the steps of a plan come from, and what each of them promises before anybody knows where it leads: how likely
the model holds it to be, or how useful a judge (RAP, section 3.2)."""

from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from reflective_agents.graphs._rap.world_model import WorldModel
from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import takes_logprobs
from reflective_agents.models.sending import Listener
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.likelihood import likelihood, lines, tokens_of
from reflective_agents.nodes.asking.sampling import calls_for, sample_texts
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import rap as prompts
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.schemas import Usefulness
from reflective_agents.state.settings.rap import RapContext
from reflective_agents.state.tree import TreeNode
from reflective_agents.text.labels import without_marker
from reflective_agents.tree_search.candidates import Branch, Candidate
from reflective_agents.tree_search.policy import Follow
from reflective_agents.tree_search.values import Judge


class Proposals:
    """The steps that the model proposes, with the likelihood of each where the provider tells it."""

    def __init__(self, step: Step[RapContext], world: WorldModel) -> None:
        self.step, self.world = step, world
        self.model = model_of(step, step.context.model)
        self.lists = step.context.proposals == "list" and not world.whole

    def calls(self, width: int) -> int:
        """Count the calls: one for a list; for single steps one where the provider takes n, else one each."""
        return 1 if self.lists else calls_for(self.model, width)

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Ask for a list, or for `width` single steps at once."""
        asks = self.step.context.action_reward != "judge" and takes_logprobs(self.model)
        options: JsonObject = {"logprobs": True} if asks else {}
        steps_in_a_reply, count = (width, 1) if self.lists else (1, width)
        prompt = self.world.propose(branch.path, steps_in_a_reply)
        replies, _ = await sample_texts(self.step, self.model, prompt, count, **options)
        steps: list[Candidate] = []
        for reply in replies:
            for text, likely in self._read(reply):
                terms = {"r0": likely} if asks and likely is not None else {}
                steps.append(Candidate(len(steps), action=text, terms=terms))
        await follow(steps)

    def _read(self, reply: AIMessage) -> list[tuple[str, float | None]]:
        if self.world.whole:
            return [(reply.text.strip(), likelihood(tokens_of(reply)))]
        steps = []
        for line, likely in lines(reply):
            if text := without_marker(line):
                steps.append((text, likely))
        return steps if self.lists else steps[:1]

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer from where the branch stands. It is read before it is one, so that nobody listens."""
        reply, *_ = await request(self.model, self.world.conclude(branch.path), self.step.meter)
        return reply.text

    def author(self, node: TreeNode) -> BaseChatModel:
        """Return the one model that there is."""
        return self.model


class UsefulnessJudge(Judge):
    """r0 of steps whose likelihood the provider does not tell: how useful a judge holds them to be, or with
    `action_reward="likelihood"` their share of the samples.

    Args:
        step: The node that asks.
        world: Where the steps are taken.
    """

    def __init__(self, step: Step[RapContext], world: WorldModel) -> None:
        super().__init__(step, world.task, together=True)
        self.world, self.by_share = world, step.context.action_reward == "likelihood"
        self.one_call = step.context.grading == "together"

    def calls(self, width: int) -> int:
        """Count the calls: at most one, or one each, as `grading` says."""
        if self.by_share:
            return 0
        return 1 if self.one_call else width

    async def compare(self, branch: Branch, candidates: Sequence[Candidate]) -> None:
        """Fill in what is missing."""
        waiting = [candidate for candidate in candidates if "r0" not in candidate.terms]
        if self.by_share:
            samples = sum(candidate.samples for candidate in candidates)
            for candidate in waiting:
                candidate.terms["r0"] = candidate.samples / samples
        elif self.one_call and waiting:
            await self._rate(branch, waiting)
        else:
            await at_once([self._rate(branch, [candidate]) for candidate in waiting])

    async def _rate(self, branch: Branch, waiting: Sequence[Candidate]) -> None:
        texts = [quoted("candidate", candidate.action, number=i) for i, candidate in enumerate(waiting, 1)]
        situation = self.world.situation(branch.path)
        prompt = prompts.RATE.format_messages(task=self.task, situation=situation, candidates="\n".join(texts))
        form = Usefulness.of(len(waiting))
        scores = await self.ask_each(prompt, form, lambda rated: rated.scores, len(waiting), "scores")
        for candidate, score in zip(waiting, scores, strict=True):
            candidate.terms["r0"] = score
