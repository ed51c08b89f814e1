"""Policies that sample the steps of an assistant with tools."""

from dataclasses import replace

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool

from reflective_agents.models.capabilities import ChatModel, with_tools
from reflective_agents.models.sending import Listener
from reflective_agents.models.toolless import guess_in
from reflective_agents.nodes.asking.sampling import calls_for, sample
from reflective_agents.nodes.asking.task_prompt import examples_text
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.context import Model
from reflective_agents.state.families import TreeContext
from reflective_agents.state.tool_calls import only_calls
from reflective_agents.text.joined import joined
from reflective_agents.tree_search.candidates import Branch, Candidate
from reflective_agents.tree_search.conversation import history, refusals, siblings_note, sourcing, with_closing
from reflective_agents.tree_search.lessons import lessons_messages
from reflective_agents.tree_search.policy import Follow, Sampling


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
        return Candidate(index, messages=[bare], guess=guess_in(reply))

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
