"""What a critic looks up and calculates before it judges (CRITIC, Gou et al. 2023, arXiv 2305.11738, section 3).

Each time the critic may call tools, as often as `LOOK_UPS`, or call none, since it knows enough. What they answer is
shown to it when it judges.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool

from reflective_agents.nodes.acting.agent import calculator
from reflective_agents.nodes.asking.chat import call_tools
from reflective_agents.nodes.asking.transcript import quoted
from reflective_agents.nodes.evidence.research import act, as_tools
from reflective_agents.nodes.step import Step
from reflective_agents.prompts import looking_up as prompts
from reflective_agents.state.context import Context, Model
from reflective_agents.state.verifier_forms import LOOK_UPS
from reflective_agents.web_search.engines import cached, choose_search, make_search, search_tool


async def look_up(
    step: Step[Context], run_id: str, model: Model, material: str, given: Sequence[Any], reserved: int = 1
) -> str:
    """Return what the tools of a critic answer, as quoted text; empty if it calls none.

    Args:
        step: The node that asks.
        run_id: The run, in which searches share their results.
        model: The critic.
        material: What it judges, quoted.
        given: Its tools: names of ours, tools and functions.
        reserved: Model calls that are kept for the judgement.

    Raises:
        LimitReached, ModelFailed: as `models.calls.request`.
    """
    tools = tools_of_critic(step, run_id, given)
    found: list[str] = []
    messages: list[BaseMessage] = prompts.LOOK_UP.format_messages(material=material)
    for _ in range(LOOK_UPS):
        if not tools or step.meter.calls_left <= reserved:
            break
        reply = await call_tools(step, model, messages, tools)
        if not reply.tool_calls and not reply.invalid_tool_calls:
            break
        answers = await act(step, reply, tools)
        wanted = {call["id"]: str(call["args"]) for call in reply.tool_calls}
        found += [_shown(answer, wanted) for answer in answers]
        messages += [reply, *answers]
    return "\n".join(found)


def tools_of_critic(step: Step[Context], run_id: str, given: Sequence[Any]) -> list[BaseTool]:
    """Return the tools of a critic; the search is that of the run."""
    own = as_tools([tool for tool in given if not isinstance(tool, str)])
    named = [calculator()] if "calculator" in given else []
    if "search" in given:
        kind, _ = choose_search(getattr(step.context, "search", None))
        corpus = getattr(step.context, "corpus", None)
        search = make_search(kind, corpus, timeout=step.context.call_timeout)
        if search:
            named.append(search_tool(cached(search, run_id) if run_id else search))
    by_name = {tool.name: tool for tool in [*named, *own]}
    return list(by_name.values())


def _shown(answer: AnyMessage, wanted: dict[str | None, str]) -> str:
    assert isinstance(answer, ToolMessage)
    arguments = wanted.get(answer.tool_call_id, "")
    return quoted("observation", answer.text, tool=answer.name or "", of=arguments[:300])
