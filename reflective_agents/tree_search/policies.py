"""Policies: they sample the candidates of a tree search."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.tools import BaseTool

from reflective_agents.models.calls import request
from reflective_agents.models.capabilities import ChatModel, takes_stop, with_tools
from reflective_agents.models.sending import Listener
from reflective_agents.models.toolless import guess_in
from reflective_agents.nodes.acting.actions import act_tool
from reflective_agents.nodes.acting.react_text import action_of, call_text, parse_step, parsed_call
from reflective_agents.nodes.asking.chat import model_of
from reflective_agents.nodes.asking.sampling import Replies, calls_for, sample, sample_each
from reflective_agents.nodes.asking.task_prompt import examples_text
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.context import Model
from reflective_agents.state.errors import LimitReached, ModelFailed
from reflective_agents.state.families import StepsContext, TreeContext
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.tool_calls import only_calls
from reflective_agents.state.tree import TreeNode
from reflective_agents.text.actions import read_answer
from reflective_agents.text.joined import joined
from reflective_agents.text.labels import without_marker
from reflective_agents.tools.run import with_call_ids
from reflective_agents.tree_search.candidates import Branch, Candidate, lessons_messages, lessons_text
from reflective_agents.tree_search.conversation import history, refusals, siblings_note, sourcing, with_closing
from reflective_agents.tree_search.worlds import OpenWorld, TaskWorld

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


class ChatSampling(Sampling):
    """Steps of an assistant with tools, which answers in plain text."""

    def __init__(self, step: Step[TreeContext], tools: list[BaseTool], model: Model = None) -> None:
        super().__init__(step, model)
        self.tools = tools

    def bound(self, branch: Branch) -> ChatModel:
        """Return the model with the tools, which it may not call where it has to answer."""
        if not self.tools:
            return self.model
        return with_tools(self.model, self.tools, None if branch.may_act else "none")

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the conversation and the steps so far; what changes from request to request comes last."""
        if self.tools:
            steps = history(branch.path, prompts.NEXT_STEP)
            situation = prompts.STEPS + sourcing(self.tools, branch.path)
        else:
            steps = history(branch.path, prompts.NEXT_ANSWER)
            situation = prompts.ANSWERING
        closing = closing or self.closing(branch, first=not steps)
        return prompts.ACT.format_messages(
            situation=examples_text(self.step.context.few_shot) + situation.format(today=today()),
            conversation=list(branch.conversation),
            trajectory=with_closing([*lessons_messages(branch), *steps], closing),
        )

    def closing(self, branch: Branch, *, first: bool) -> str:
        """Return what is said last: of the siblings of the step, or that it is the last one.

        Args:
            branch: Where the step is taken.
            first: Whether it is the first one of its path, before which there is nothing to go by.
        """
        if self.tools and not branch.may_act:
            return "" if first else prompts.LAST_STEP
        notes = siblings_note(branch)
        if self.tools and not first:
            notes.append(self.note_on_width(branch.job["width"]))
        return joined(notes)

    def note_on_width(self, width: int) -> str:
        """Say that the step is sampled several times, if it is."""
        return prompts.APART.format(width=width) if width > 1 else ""

    def read(self, reply: AIMessage, index: int) -> Candidate:
        """Keep the message without the provider's metadata, which may be longer than the message."""
        bare = reply.model_copy(update={"response_metadata": {}, "usage_metadata": None})
        return Candidate(index, messages=[with_call_ids(bare)], guess=guess_in(reply))

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer; no tool may be called."""
        return await super().conclude(replace(branch, may_act=False), listener)


class ListedCalls(ChatSampling):
    """Asks for different next steps in one reply, each as a tool call of its own; a reply without a call is an answer.

    Args:
        step: The step of the graph, with the settings and the meter.
        tools: The tools that may be called.
        lists: How many such replies are sampled at once.
    """

    def __init__(self, step: Step[TreeContext], tools: list[BaseTool], lists: int) -> None:
        super().__init__(step, tools)
        self.lists = lists

    def calls(self, width: int) -> int:
        """Count the calls: one where the provider takes n, else one per list."""
        return calls_for(self.model, self.lists)

    def note_on_width(self, width: int) -> str:
        """Say that each call is a step of its own."""
        return prompts.LIST_CALLS.format(width=width)

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Ask for the lists at once, and pass their steps on."""
        prompt = [*self.prompt(branch), *refusals(branch)]
        replies = await sample(self.step, self.bound(branch), prompt, self.lists)
        messages: list[AIMessage] = []
        for reply in replies:
            messages += _one_per_call(reply)
        messages = messages[: width * self.lists]
        await follow([self.read(message, i) for i, message in enumerate(messages)])


def _one_per_call(reply: AIMessage) -> list[AIMessage]:
    """Split a reply into one message for each of its calls."""
    if len(reply.tool_calls) <= 1:
        return [reply]
    return [only_calls(reply, [call]) for call in reply.tool_calls]


class ActSampling(Sampling):
    """Steps of an agent in an environment, as calls of the tool `act`: the task once, and the steps in turns."""

    def __init__(self, step: Step[TreeContext], world: TaskWorld, model: Model = None) -> None:
        super().__init__(step, model)
        self.world, self.environment = world, world.environment

    def bound(self, branch: Branch) -> ChatModel:
        """Return the model with the tool `act`."""
        return with_tools(self.model, [act_tool(self.environment)])

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the task and the steps so far, and then what changes from request to request."""
        steps: list[AnyMessage] = []
        for node in branch.path:
            if node.get("action"):
                steps += _turns(node)
        if not closing and self._ends(branch):
            closing = prompts.LAST_ACTION.strip()
        return prompts.ACT_TASK.format_messages(
            task=self.world.task,
            conversation=list(branch.conversation[:-1]),
            request=branch.request,
            lessons=lessons_text(branch),
            steps=with_closing(steps, closing),
        )

    def _ends(self, branch: Branch) -> bool:
        """Tell whether the next step has to end the task with its action."""
        return not branch.may_act and self.environment.final_action("") is not None

    def read(self, reply: AIMessage, index: int) -> Candidate:
        """Read the first action, also one written without a call; an answer becomes the action that gives it."""
        if reply.tool_calls:
            return Candidate(index, thought=reply.text, action=call_text(reply.tool_calls[0]), guess=guess_in(reply))
        if reply.invalid_tool_calls:
            return Candidate(index, action="")
        move = parsed_call(reply, self.environment)
        return Candidate(index, thought=move["thought"], action=move["action"] or self._giving(move["answer"]))

    def _giving(self, answer: str | None) -> str:
        return action_of(answer or "", self.environment)

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer; nothing may be called."""
        chat = with_tools(self.model, [act_tool(self.environment)], "none")
        prompt = self.prompt(branch, prompts.CONCLUDE)
        reply, *_ = await request(chat, prompt, self.step.meter, listener=listener)
        return reply.text


def _turns(node: TreeNode) -> list[AnyMessage]:
    """Return a step as a call and its result, followed by the judge's critique."""
    call = tool_call(name="act", args={"action": node.get("action", "")}, id=f"call_{node['id']}")
    turns: list[AnyMessage] = [AIMessage(node.get("thought", ""), tool_calls=[call])]
    turns.append(ToolMessage(node.get("observation", ""), tool_call_id=call["id"], name="act"))
    if node["critique"]:
        turns.append(HumanMessage(quoted("critique", node["critique"])))
    return turns


class PaperSampling(ActSampling):
    """Steps of an agent in an environment, as one text: a thought and an action (ReAct)."""

    def bound(self, branch: Branch) -> ChatModel:
        """Return the model without tools."""
        return self.model

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the task and the steps so far, and then what changes from request to request."""
        taken = [node for node in branch.path if node.get("action")]
        steps = ""
        for number, node in enumerate(taken, 1):
            steps += _lines(number, node)
        if closing:
            steps += closing
        else:
            last = prompts.LAST_ACTION if self._ends(branch) else ""
            steps += f"{last}Thought {len(taken) + 1}:"
        return prompts.ACT_TEXT.format_messages(
            task=self.world.task,
            conversation=list(branch.conversation[:-1]),
            request=branch.request,
            lessons=lessons_text(branch),
            steps=steps,
        )

    def read(self, reply: AIMessage, index: int) -> Candidate:
        """Read thought and action; an answer without an action becomes the action that gives it."""
        move = parse_step(reply.text, environment=self.environment)
        action = move["action"] or self._giving(move["answer"])
        guess = read_answer(reply.text) or ""
        return Candidate(index, thought=move["thought"], action=action, guess=guess)

    def options(self) -> JsonObject:
        """End the step before an observation."""
        return {"stop": ["\nObservation"]} if takes_stop(self.model) else {}

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Ask for an answer from the steps of the branch."""
        return await Sampling.conclude(self, branch, listener)


def _lines(number: int, node: TreeNode) -> str:
    lines = [f"Thought {number}: {node.get('thought', '')}", f"Action {number}: {node.get('action', '')}"]
    lines.append(f"Observation {number}: {node.get('observation', '')}")
    if node["critique"]:
        lines.append(quoted("critique", node["critique"]))
    return "".join(f"{line}\n" for line in lines)


class ListProposals(ActSampling):
    """Asks for lists of next steps, one step a line (the propose prompt of Tree of Thoughts).

    Args:
        step: The step of the graph, with the settings and the meter.
        world: The task.
        lists: How many lists are sampled at once.
    """

    template = prompts.LIST

    def __init__(self, step: Step[TreeContext], world: TaskWorld, lists: int) -> None:
        super().__init__(step, world)
        self.lists = lists

    def calls(self, width: int) -> int:
        """Count the calls: one where the provider takes n, else one per list."""
        return calls_for(self.model, self.lists)

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the prompt with the state at the end of the branch: for such tasks nothing else matters."""
        if closing:
            return super().prompt(branch, closing)
        state = quoted("task", self.environment.public(self.world.state(branch.path[-1])))
        return self.template.format_messages(task=self.world.task, state=state, lessons=lessons_text(branch))

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Ask for the lists at once; each line is a step. The more lists propose it, the more samples it has."""
        prompt = [*self.prompt(branch), *refusals(branch)]
        replies = await sample(self.step, self.model, prompt, self.lists)
        steps: list[Candidate] = []
        for reply in replies:
            for line in reply.text.splitlines():
                if action := without_marker(line):
                    steps.append(Candidate(len(steps), action=action))
        await follow(steps)


class Arms:
    """Several policies; each job names one."""

    def __init__(self, policies: Mapping[str, Sampling]) -> None:
        self.policies = policies

    def calls(self, width: int) -> int:
        """Count the calls of the policy that takes the most."""
        return max(policy.calls(width) for policy in self.policies.values())

    async def sample(self, branch: Branch, width: int, follow: Follow) -> None:
        """Let the policy of the job sample."""
        await self.policies[branch.job.get("arm", "")].sample(branch, width, follow)

    async def conclude(self, branch: Branch, listener: Listener | None = None) -> str:
        """Let the policy conclude that has made the last step."""
        return await self._of(branch.path[-1]).conclude(branch, listener)

    def author(self, node: TreeNode) -> BaseChatModel:
        """Return the model that has made a node; the first, if it is the root."""
        return self._of(node).model

    def _of(self, node: TreeNode) -> Sampling:
        first, *_ = self.policies.values()
        return self.policies.get(node.get("model", ""), first)


def sampling_for(step: Step[TreeContext], world: OpenWorld | TaskWorld, model: Model = None) -> Sampling:
    """Return the policy that samples each step of a world on its own."""
    if isinstance(world, OpenWorld):
        return ChatSampling(step, world.tools, model)
    on_paper = isinstance(step.context, StepsContext) and step.context.acting == "paper"
    return PaperSampling(step, world, model) if on_paper else ActSampling(step, world, model)
