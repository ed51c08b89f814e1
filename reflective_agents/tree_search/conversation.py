"""The messages that ask for the next step of a branch: its path, its siblings, and what was refused."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from reflective_agents.nodes.asking.transcript import quoted, steps_text
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.tree import TreeNode
from reflective_agents.tree_search.candidates import Branch


def history(trajectory: Sequence[TreeNode], next_step: str) -> list[AnyMessage]:
    """Return a trajectory as the agent sees it: its own messages and observations. Each step is followed by the judge's
    critique, with the instruction for the `next_step`."""
    messages: list[AnyMessage] = []
    for node in trajectory:
        messages += node["messages"]
        if node["critique"]:
            parts = [node["critique"], *([node.get("checked", "")] if node.get("unfounded") else [])]
            critique = quoted("critique", "\n".join(parts))
            messages.append(HumanMessage(prompts.CRITIQUE.format(critique=critique, next=next_step)))
    return messages


def sibling_calls(branch: Branch) -> str:
    """Return, as quoted text, the tool calls of the children that the job's node has already."""
    ids = (f"{branch.job['node']}.{i}" for i in range(branch.job["first"]))
    children = [branch.tree[child] for child in ids if child in branch.tree]
    calls = [steps_text(node["messages"][:1]) for node in children if node["messages"] and node["kind"] == "action"]
    return "\n".join(dict.fromkeys(calls))


def refusals(branch: Branch) -> list[BaseMessage]:
    """Return the message for a model whose proposals were all refused; none if none were."""
    reasons = "\n".join(quoted("observation", why) for why in branch.refused)
    return [HumanMessage(prompts.REFUSED.format(reasons=reasons))] if reasons else []


def with_closing(messages: Sequence[AnyMessage], closing: str) -> list[AnyMessage]:
    """Return messages that end with a closing instruction, which is joined to a user's message before it."""
    if closing and messages and messages[-1].type == "human":
        return [*messages[:-1], HumanMessage(f"{messages[-1].text}\n{closing}")]
    return [*messages, HumanMessage(closing)] if closing else [*messages]
