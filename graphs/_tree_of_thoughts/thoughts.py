"""Thoughts on open questions: first plans, then answers that follow them (Tree of Thoughts, section 4.2)."""

from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.tools import BaseTool

from reflective_agents.nodes.asking.task_prompt import examples_text
from reflective_agents.nodes.evidence.research import today
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import tree_of_thoughts as prompts
from reflective_agents.prompts.search import ALONE, TODAY
from reflective_agents.state.families import TreeContext
from reflective_agents.state.tree import TreeNode
from reflective_agents.text.labels import label_of
from reflective_agents.tree_search.candidates import Branch, Candidate, is_answer
from reflective_agents.tree_search.chat_policies import ChatSampling
from reflective_agents.tree_search.conversation import history, sourcing, with_closing
from reflective_agents.tree_search.lessons import lessons_messages
from reflective_agents.tree_search.worlds import OpenWorld


def plans(context: TreeContext) -> int:
    """Return how many levels of plans there are before the answers: one, if there is a level for answers below."""
    return int(context.max_depth > 1)


class Thoughts(OpenWorld):
    """A thought of the first level is a plan, or searches, or is an answer that says so; below it answers, or
    searches."""

    def __init__(self, step: Step[TreeContext], tools: list[BaseTool], conversation: Sequence[AnyMessage]) -> None:
        super().__init__(step, tools, conversation)
        self.plans = plans(step.context)

    def canonical(self, candidate: Candidate) -> str:
        """Compare the text of a plan, else that of the message with its tool calls."""
        return super().canonical(candidate) if candidate.messages else " ".join(candidate.thought.split())

    async def act(self, candidate: Candidate, path: Sequence[TreeNode]) -> str | None:
        """Run the tools that the message calls; plain text on the first level becomes the plan."""
        early = len(path) <= self.plans
        # First, since it takes off the label by which the message says so.
        at_once = early and _without_need_of_a_plan(candidate)
        refused = await super().act(candidate, path)
        if refused is None and candidate.answers and early and not at_once:
            candidate.answers = candidate.final = False
            candidate.thought, candidate.messages = candidate.messages[0].text, []
            candidate.checked, candidate.unfounded = "", False
        return refused


def _without_need_of_a_plan(candidate: Candidate) -> bool:
    """Tell whether a first message answers at once; the label that says so is taken off."""
    message = candidate.messages[0]
    label = label_of(message.text.lstrip().partition("\n")[0], ("answer", "final"))
    if label is None or not is_answer(message):
        return False
    candidate.messages[0] = message.model_copy(update={"content": message.text.lstrip()[label[1] :].strip()})
    return True


class Thinking(ChatSampling):
    """Samples plans, answers after a plan, and better answers after those."""

    def prompt(self, branch: Branch, closing: str = "") -> list[BaseMessage]:
        """Return the conversation, the thoughts up to here, and what is to be written next."""
        thoughts = history([_spoken(node) for node in branch.path], "")
        tools = prompts.TOOLS if self.tools else ""
        examples = examples_text(self.step.context.few_shot)
        sources = sourcing(self.tools, branch.path) if self.tools else ALONE
        situation = f"{TODAY.format(today=today())} {sources}"
        return prompts.THINK.format_messages(
            steps=prompts.PLAN.format(tools=tools) if plans(self.step.context) else prompts.ONLY_ANSWER,
            situation=f"{situation}\n\n{examples}" if examples else situation,
            conversation=list(branch.conversation),
            thoughts=[*lessons_messages(branch), *with_closing(thoughts, closing or self._task(branch))],
        )

    def _task(self, branch: Branch) -> str:
        """Return what the next step is; the first one is said at the beginning."""
        if len(branch.path) == 1:
            return ""
        return prompts.IMPROVE if any(node["kind"] == "answer" for node in branch.path) else prompts.ANSWER


def _spoken(node: TreeNode) -> TreeNode:
    """Put a node's thought into a message of the agent."""
    thought = node.get("thought")
    if not thought or node["messages"]:
        return node
    return cast(TreeNode, {**node, "messages": [AIMessage(thought)]})
