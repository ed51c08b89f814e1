"""The messages that ask for the next step of a branch: its path, its siblings, and what was refused."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.tools import BaseTool

from reflective_agents.nodes.asking.transcript import quoted, steps_text
from reflective_agents.nodes.evidence.reference_list import split_references
from reflective_agents.nodes.evidence.sources import observations_on, sources_of
from reflective_agents.prompts import lats as prompts
from reflective_agents.prompts import search as search_prompts
from reflective_agents.state.tree import TreeNode
from reflective_agents.tree_search.candidates import Branch

LONGEST_EARLIER = 800
"""Characters of an earlier answer that are shown to who gives the next one."""


def history(trajectory: Sequence[TreeNode], next_step: str) -> list[AnyMessage]:
    """Return a trajectory as the agent sees it: its own messages and observations. Each step is followed by the judge's
    critique, with the instruction for the `next_step`."""
    messages: list[AnyMessage] = []
    for node in trajectory:
        messages += node["messages"]
        if node["critique"]:
            parts = [node["critique"]]
            if node.get("unfounded"):
                parts.append(node.get("checked", ""))
            critique = quoted("critique", "\n".join(parts))
            messages.append(HumanMessage(prompts.CRITIQUE.format(critique=critique, next=next_step)))
    return messages


def sourcing(tools: Sequence[BaseTool], path: Sequence[TreeNode]) -> str:
    """Return what an agent with tools is told of what they return: how to cite it, where there is something to cite."""
    cites = any(tool.name == "search" for tool in tools) or sources_of(observations_on(path))
    others = any(tool.name != "search" for tool in tools)
    material = search_prompts.TOOL_MATERIAL if others else search_prompts.MATERIAL
    return f"{search_prompts.CITE} {material}" if cites else material


def siblings_note(branch: Branch) -> list[str]:
    """Return what is said of the children that the job's node has already: their tool calls, and their answers."""
    calls: dict[str, None] = {}
    answers: list[str] = []
    for i in range(branch.job["first"]):
        node = branch.tree.get(f"{branch.job['node']}.{i}")
        if node is None or not node["messages"]:
            continue
        if node["kind"] == "action":
            calls[steps_text(node["messages"][:1])] = None
        elif node["kind"] == "answer":
            answers.append(_excerpt(node))
    notes = []
    if calls:
        notes.append(prompts.EARLIER_STEPS.format(steps="\n".join(calls)))
    if answers:
        notes.append(prompts.EARLIER_ANSWERS.format(answers="\n".join(answers)))
    return notes


def _excerpt(answer: TreeNode) -> str:
    body, _ = split_references(answer["messages"][0].text)
    return quoted("answer", body if len(body) <= LONGEST_EARLIER else f"{body[:LONGEST_EARLIER]} ...")


def refusals(branch: Branch) -> list[BaseMessage]:
    """Return the message for a model whose proposals were all refused; none if none were."""
    reasons = "\n".join(quoted("observation", why) for why in branch.refused)
    return [HumanMessage(prompts.REFUSED.format(reasons=reasons))] if reasons else []


def with_closing(messages: Sequence[AnyMessage], closing: str) -> list[AnyMessage]:
    """Return messages that end with a closing instruction, which is joined to a user's message before it."""
    if not closing:
        return [*messages]
    if messages and messages[-1].type == "human":
        return [*messages[:-1], HumanMessage(f"{messages[-1].text}\n{closing}")]
    return [*messages, HumanMessage(closing)]
