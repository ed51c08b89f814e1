"""Policies: how the candidates of a search are sampled."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool

from environments.base import Environment
from models.calls import ChatModel, request, takes_n, takes_seed, takes_stop
from nodes.acting import read_move
from nodes.candidates import Branch, Candidate, told
from nodes.chat import model_of
from nodes.memo import at_once, each_to_its_end
from nodes.step import Step
from nodes.transcript import quoted
from nodes.worlds import TaskWorld
from prompts import lats as prompts
from prompts.react import EXAMPLES
from state.errors import LimitReached, ModelFailed
from state.searching import TreeContext
from state.tree import TreeNode
from tools.run import with_call_ids

Follow = Callable[[list[Candidate]], Awaitable[None]]
"""Takes candidates as they come, and sees them through."""


class Policy(Protocol):
    """How steps are thought of."""

    def calls(self, width: int) -> int:
        """How many calls so many candidates take."""
        ...

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Think of up to `width` steps, and hand each on as soon as it is there.

        Raises:
            LimitReached, ModelFailed: if some or all of them are not to be had.
        """
        ...

    async def conclude(self, branch: Branch) -> str:
        """Ask for an answer now, in plain text."""
        ...


class Sampling(ABC):
    """Samples each step on its own: all in one request where the provider can, else in requests at once.

    Subclasses say what is asked (`prompt`) and how a reply is read (`read`).
    """

    def __init__(self, step: Step[TreeContext], model: Any = None) -> None:
        self.step = step
        self.model: BaseChatModel = model_of(step, model or step.context.model)

    @abstractmethod
    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """What the model is asked for the next step, or with `closing` for an answer."""

    @abstractmethod
    def read(self, reply: AIMessage, index: int) -> Candidate:
        """The candidate that a reply is."""

    def bound(self, branch: Branch) -> ChatModel:
        """The model with what it may call."""
        return self.model

    def options(self) -> dict[str, Any]:
        """Further options of a request."""
        return {}

    def calls(self, width: int) -> int:
        """One where the provider takes n, else one each."""
        return 1 if takes_n(self.model) else width

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Ask for `width` steps, and make up in single requests what a provider leaves out.

        With a seed all of them are awaited before the first is followed, so that of two that come to the same it is
        always the same one that stays.
        """
        if self.step.context.seed is None:
            await self._ask_all(branch, width, follow)
            return
        drawn: list[Candidate] = []

        async def keep(candidates: list[Candidate]) -> None:
            drawn.extend(candidates)

        stopped: LimitReached | ModelFailed | None = None
        try:
            await self._ask_all(branch, width, keep)
        except (LimitReached, ModelFailed) as stop:
            stopped = stop
        await follow(sorted(drawn, key=lambda candidate: candidate.index))
        if stopped is not None:
            raise stopped

    async def _ask_all(self, branch: Branch, width: int, follow: Follow) -> None:
        size = width if takes_n(self.model) else 1
        await each_to_its_end([self._ask(branch, first, size, follow) for first in range(0, width, size)])

    async def _ask(self, branch: Branch, first: int, size: int, follow: Follow) -> None:
        seed = self.step.context.seed
        place = branch.job["first"] + first  # or children that are made one by one would all be drawn alike
        seeded: dict[str, Any] = {"seed": seed + place} if seed is not None and takes_seed(self.model) else {}
        prompt = self.prompt(branch)
        replies = await request(self.bound(branch), prompt, self.step.meter, n=size, **seeded, **self.options())
        candidates = [self.read(reply, first + i) for i, reply in enumerate(replies[:size])]
        missing = range(first + len(replies), first + size)
        rest: list[Awaitable[None]] = [self._ask(branch, index, 1, follow) for index in missing]
        await each_to_its_end([follow(candidates), *rest])

    async def conclude(self, branch: Branch) -> str:
        """Ask for an answer from where the branch stands."""
        chat = self.bound(branch)
        return (await request(chat, self.prompt(branch, prompts.CONCLUDE), self.step.meter))[0].text


class ChatSampling(Sampling):
    """Steps of an assistant with tools, which answers in plain text."""

    def __init__(self, step: Step[TreeContext], tools: list[BaseTool], model: Any = None) -> None:
        super().__init__(step, model)
        self.tools = tools

    def bound(self, branch: Branch) -> ChatModel:
        """The model with the tools; which it may not call where it has to answer."""
        if not self.tools:
            return self.model
        return self.model.bind_tools(self.tools, tool_choice=None if branch.may_act else "none")

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """The conversation and the steps so far; what changes from request to request stands last."""
        lessons = [HumanMessage(text)] if (text := told(branch)) else []
        said = [*lessons, *history(branch.path), *([HumanMessage(closing)] if closing else [])]
        return prompts.ACT.format_messages(conversation=list(branch.conversation), trajectory=said)

    def read(self, reply: AIMessage, index: int) -> Candidate:
        """The message without what the provider says of it, which is longer than the rest of a short one."""
        bare = reply.model_copy(update={"response_metadata": {}, "usage_metadata": None})
        return Candidate(index, messages=[with_call_ids(bare)])

    async def conclude(self, branch: Branch) -> str:
        """The same; no tool may be called."""
        return await super().conclude(Branch(branch.job, branch.conversation, branch.request, branch.path, (), False))


class ActSampling(Sampling):
    """Steps of an agent in an environment, as text: a thought and an action (ReAct)."""

    def __init__(self, step: Step[TreeContext], environment: Environment, model: Any = None) -> None:
        super().__init__(step, model)
        self.environment = environment

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """The task and the steps so far, and then what changes from request to request."""
        context = self.step.context
        steps = [node for node in branch.path if node.get("action")]
        said = "".join(f"{line}\n" for number, node in enumerate(steps, 1) for line in _lines(number, node))
        return prompts.ACT_TEXT.format_messages(
            actions=self.environment.actions,
            examples=EXAMPLES.get(context.environment_name, "") if context.examples else "",
            conversation=list(branch.conversation[:-1]),
            request=branch.request,
            lessons=told(branch),
            steps=f"{said}{closing or f'Thought {len(steps) + 1}:'}",
        )

    def read(self, reply: AIMessage, index: int) -> Candidate:
        """Thought and action; an answer without an action becomes the action that gives it."""
        move = read_move(reply.text)
        return Candidate(index, thought=move["thought"], action=move["action"] or move["answer"] or "")

    def options(self) -> dict[str, Any]:
        """The step ends before an observation."""
        return {"stop": ["\nObservation"]} if takes_stop(self.model) else {}


def _lines(number: int, node: TreeNode) -> list[str]:
    lines = [f"Thought {number}: {node.get('thought', '')}", f"Action {number}: {node.get('action', '')}"]
    lines += [f"Observation {number}: {node.get('observation', '')}"]
    return [*lines, quoted("critique", node["critique"])] if node["critique"] else lines


class ListProposals(ActSampling):
    """Asks for lists of next steps, one step a line (the propose prompt of Tree of Thoughts)."""

    step: Step[Any]
    template = prompts.LIST

    def __init__(self, step: Step[Any], world: TaskWorld) -> None:
        super().__init__(step, world.environment)
        self.world = world

    def calls(self, width: int) -> int:
        """One where the provider takes n, else one a list."""
        return 1 if takes_n(self.model) else self.step.context.lists

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """The state that the branch has come to, which for such tasks is all that matters."""
        if closing:
            return super().prompt(branch, closing)
        state = quoted("task", self.environment.public(self.world.state(branch.path[-1])))
        return self.template.format_messages(actions=self.environment.actions, state=state, lessons=told(branch))

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Ask for the lists at once; each line of a reply is a step, and the more lists it stands in, the better."""
        seed, prompt, lists = self.step.context.seed, self.prompt(branch), self.step.context.lists
        seeded: dict[str, Any] = {"seed": seed} if seed is not None and takes_seed(self.model) else {}
        sizes = [lists] if takes_n(self.model) else [1] * lists
        replies = await at_once([request(self.model, prompt, self.step.meter, n=size, **seeded) for size in sizes])
        lines = [line.strip() for batch in replies for reply in batch for line in reply.text.splitlines()]
        await follow([Candidate(i, action=line) for i, line in enumerate(filter(None, lines))])


class Arms:
    """Several policies, of which each job names one."""

    def __init__(self, policies: Mapping[str, Sampling]) -> None:
        self.policies = policies

    def calls(self, width: int) -> int:
        """Those of the policy that takes the most."""
        return max(policy.calls(width) for policy in self.policies.values())

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Let the policy of the job sample."""
        await self.policies[branch.job.get("arm", "")].sample(branch, width, follow)

    async def conclude(self, branch: Branch) -> str:
        """Let the policy conclude that has made the last step."""
        return await self.of(branch.path[-1]).conclude(branch)

    def of(self, node: TreeNode) -> Sampling:
        """The policy that has made a node; the first, if it is the root."""
        return self.policies.get(node.get("model", "")) or next(iter(self.policies.values()))


def history(trajectory: Sequence[TreeNode]) -> list[AnyMessage]:
    """A trajectory as the agent sees it: its own messages and observations, each step followed by the judge's
    critique."""
    messages: list[AnyMessage] = []
    for node in trajectory:
        messages += node["messages"]
        if node["critique"]:
            messages.append(HumanMessage(prompts.CRITIQUE.format(critique=node["critique"])))
    return messages
