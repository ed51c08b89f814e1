"""What a model is told of a branch when it is asked for the next step: its path, its siblings, and what was refused."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from reflective_agents.nodes.asking.transcript import quoted, steps_text
from reflective_agents.prompts import lats as prompts
from reflective_agents.state.tree import TreeNode
from reflective_agents.tree_search.candidates import Branch


def history(trajectory: Sequence[TreeNode], then: str) -> list[AnyMessage]:
    """Return a trajectory as the agent sees it: its own messages and observations, each step followed by the judge's
    critique, and by what to do `then`."""
    messages: list[AnyMessage] = []
    for node in trajectory:
        messages += node["messages"]
        if node["critique"]:
            said = [node["critique"], *([node.get("checked", "")] if node.get("unfounded") else [])]
            critique = quoted("critique", "\n".join(said))
            messages.append(HumanMessage(prompts.CRITIQUE.format(critique=critique, next=then)))
    return messages


def standing(branch: Branch) -> str:
    """Return as quoted text the calls of tools by which steps have gone on from here."""
    job = branch.job
    named = [f"{job['node']}.{place}" for place in range(job["first"])]
    children = [branch.tree[name] for name in named if name in branch.tree]
    called = [steps_text(node["messages"][:1]) for node in children if node["messages"] and node["kind"] == "action"]
    return "\n".join(dict.fromkeys(called))


def refusals(branch: Branch) -> list[BaseMessage]:
    """Return what the model is told where nothing can be done of all that it has proposed."""
    reasons = "\n".join(quoted("observation", why) for why in branch.refused)
    return [HumanMessage(prompts.REFUSED.format(reasons=reasons))] if reasons else []


def with_closing(messages: Sequence[AnyMessage], closing: str) -> list[AnyMessage]:
    """Return messages that end with a closing word, which joins the user's message before it if there is one."""
    *earlier, last = messages or [HumanMessage("")]
    if not closing or not messages:
        return [*messages, *([HumanMessage(closing)] if closing else [])]
    joined = [HumanMessage(f"{last.text}\n{closing}")] if last.type == "human" else [last, HumanMessage(closing)]
    return [*earlier, *joined]
