"""Thoughts on open questions: first plans, then answers that follow them (Tree of Thoughts, section 4.2)."""

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool

from nodes.candidates import Branch, Candidate, told
from nodes.policies import ChatSampling, history
from nodes.step import Step
from nodes.worlds import OpenWorld
from prompts import tree_of_thoughts as prompts
from state.searching import TreeContext
from state.tree import TreeNode


def plans(context: TreeContext) -> int:
    """How many levels of plans there are before the answers: one, if there is a level for answers below."""
    return int(context.max_depth > 1)


class Thoughts(OpenWorld):
    """A thought of the first level is a plan, or searches; below it answers, or searches."""

    def __init__(self, step: Step[Any], tools: list[BaseTool]) -> None:
        super().__init__(step, tools)
        self.plans = plans(step.context)

    def same(self, candidate: Candidate) -> str:
        """The text of a plan, else that of the message with its tool calls."""
        return super().same(candidate) if candidate.messages else " ".join(candidate.thought.split())

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Run the tools that the message calls; plain text on the first level becomes the plan."""
        refused = await super().act(candidate, path)
        if refused is None and candidate.answers and len(path) <= self.plans:
            candidate.answers = candidate.final = False
            candidate.thought, candidate.messages = candidate.messages[0].text, []
        return refused


class Thinking(ChatSampling):
    """Samples plans, answers after a plan, and better answers after those."""

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """The conversation, the thoughts up to here, and what is to be written next."""
        lessons = [HumanMessage(text)] if (text := told(branch)) else []
        thoughts = history([_spoken(node) for node in branch.path])
        task = closing or self._task(branch)
        if thoughts and thoughts[-1].type == "human":  # the critique of the last step
            task = f"{thoughts.pop().text}\n{task}".strip()
        return prompts.THINK.format_messages(
            steps=self._steps(),
            conversation=list(branch.conversation),
            thoughts=[*lessons, *thoughts, *([HumanMessage(task)] if task else [])],
        )

    def _steps(self) -> str:
        search = prompts.SEARCH if self.tools else ""
        return prompts.PLAN.format(search=search) if plans(self.step.context) else prompts.ONLY_ANSWER

    def _task(self, branch: Branch) -> str:
        """What the next step is; the first one is told at the beginning."""
        if len(branch.path) == 1:
            return ""
        return prompts.IMPROVE if any(node["kind"] == "answer" for node in branch.path) else prompts.ANSWER


def _spoken(node: TreeNode) -> TreeNode:
    """A node whose thought stands in a message of the agent."""
    thought = node.get("thought")
    return cast(TreeNode, {**node, "messages": [AIMessage(thought)]}) if thought and not node["messages"] else node
