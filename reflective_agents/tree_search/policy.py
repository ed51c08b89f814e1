"""What samples the candidates of a tree search."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import ChatModel
from reflective_agents.models.sending import Listener
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.sampling import Replies, calls_for, sample_each
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.context import Model
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.families import TreeContext
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.tree import TreeNode
from reflective_agents.tree_search.candidates import Branch, Candidate
from reflective_agents.tree_search.conversation import refusals

Follow = Callable[[list[Candidate]], Awaitable[None]]
"""Takes candidates as they come, and has them carried out and graded."""


class Policy(Protocol):
    """Proposes next steps."""

    def calls(self, width: int) -> int:
        """Return how many model calls `width` candidates take."""
        ...

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Sample up to `width` steps, and pass each to `follow` as soon as it is there.

        Raises:
            LimitReached, ModelFailed: if some or all of them cannot be sampled.
        """
        ...

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer now, in plain text."""
        ...

    def author(self, node: TreeNode) -> BaseChatModel | None:
        """Return the model that has made a node; None if it was made by an agent of the user's own."""
        ...


class Sampling(ABC):
    """Samples each step on its own: all in one request where the provider can, else in concurrent requests.

    Subclasses implement the prompt and the reading of a reply.
    """

    def __init__(self, step: Step[TreeContext], model: Model = None) -> None:
        self.step = step
        self.model = model_of(step, model or step.context.model)

    @abstractmethod
    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the prompt for the next step, or with `closing` for an answer."""

    @abstractmethod
    def read(self, reply: AIMessage, index: int) -> Candidate:
        """Read a reply as a candidate."""

    def bound(self, branch: Branch) -> ChatModel:
        """Return the model with the tools that it may call."""
        return self.model

    def options(self) -> JsonObject:
        """Return further options of a request."""
        return {}

    def calls(self, width: int) -> int:
        """Count the calls: one where the provider takes n, else one each."""
        return calls_for(self.model, width)

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Sample `width` steps.

        With a seed, all are awaited before the first is passed on, so that of two equal ones always the same is kept.
        """
        in_order = self.step.context.seed is not None
        sampled: list[Candidate] = []

        async def read(replies: Replies) -> None:
            candidates = [self.read(reply, index) for index, reply in replies.items()]
            if in_order:
                sampled.extend(candidates)
            else:
                await follow(candidates)

        options = {"first": branch.job["first"], **self.options()}
        prompt = [*self.prompt(branch), *refusals(branch)]
        try:
            await sample_each(self.step, self.bound(branch), prompt, range(width), read, **options)
        except (LimitReached, ModelFailed):
            await follow(sorted(sampled, key=lambda candidate: candidate.index))
            raise
        await follow(sorted(sampled, key=lambda candidate: candidate.index))

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer from the steps of the branch."""
        prompt = self.prompt(branch, prompts.CONCLUDE)
        reply, *_ = await request(self.bound(branch), prompt, self.step.meter, listener=listener)
        return reply.text

    def author(self, node: TreeNode) -> BaseChatModel:
        """Return the model, which makes all nodes."""
        return self.model
