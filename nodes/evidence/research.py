"""How nodes search: the engine of the run, its tool, and running what a model calls."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import tool as as_tool
from pydantic import JsonValue

from reflective_agents import telemetry
from reflective_agents.models.event_loops import is_background, running_loop
from reflective_agents.nodes.acting.client_tools import calls_of_caller, results_of
from reflective_agents.nodes.memo import at_once
from reflective_agents.nodes.step import Step
from reflective_agents.nodes.strategy import Strategy
from reflective_agents.state.context import Context
from reflective_agents.state.errors import SearchFailed
from reflective_agents.state.families import SearchContext
from reflective_agents.state.limits import sentence
from reflective_agents.tools.run import Run, run_together, run_tool_calls
from reflective_agents.web_search.engines import Search, cached, choose_search, make_search, search_tool
from reflective_agents.web_search.results import SearchResult


def engine(step: Step[SearchContext], run_id: str) -> Search | None:
    """Return the search engine of this run, with its results cached for the run, and the long texts beside them; None
    if there are no texts and the settings turn it off."""
    context = step.context
    kind, _ = choose_search(context.search)
    search = make_search(kind, context.corpus, timeout=context.call_timeout)
    return step.texts.beside(cached(search, run_id) if search else None)


def search_tools(step: Step[SearchContext], run_id: str) -> list[BaseTool]:
    """Return the search tools that an agent of this run may call."""
    search = engine(step, run_id)
    reading = [step.texts.tool()] if step.texts else []
    return [search_tool(search), *reading] if search else reading


def today() -> str:
    """Return the date with the day of the week, for prompts."""
    return f"{datetime.now(UTC):%A, %Y-%m-%d}"


def as_tools(tools: Sequence[BaseTool | Callable[..., JsonValue]]) -> list[BaseTool]:
    """Return the tools of a setting as they are called here; a plain function becomes a tool.

    For a synchronous caller a tool with two halves is called by the synchronous one, as LangChain does: what the other
    one uses may belong to an event loop of the user's. A strategy has clients for each loop.
    """
    made = [tool if isinstance(tool, BaseTool) else as_tool(tool) for tool in tools]
    return [_synchronous(tool) for tool in made] if is_background(running_loop()) else made


def _synchronous(tool: BaseTool) -> BaseTool:
    if not isinstance(tool, StructuredTool) or isinstance(getattr(tool.func, "__self__", None), Strategy):
        return tool
    return tool.model_copy(update={"coroutine": None}) if tool.func else tool


async def act(
    step: Step[Context], message: AIMessage, tools: list[BaseTool], run: Run = run_together
) -> list[AnyMessage]:
    """Run all tool calls of a message at once. Each is answered; what goes wrong is an answer too.

    Those of the caller's tools wait for the caller, before any other is run: a node that is resumed begins anew.

    Args:
        step: The node that acts.
        message: What the model said.
        tools: What it may call.
        run: How the other calls are run.
    """
    step.meter.check()
    callers = calls_of_caller(message, tools)
    observations = results_of(callers)
    others = [call for call in message.tool_calls if call not in callers]
    ours = message.model_copy(update={"tool_calls": others})
    timeout = min(step.context.call_timeout, step.meter.seconds_left)
    observations += await run_tool_calls(ours, tools, timeout=timeout, run=run)
    wanted = {call["id"]: str(call["args"]) for call in message.tool_calls}
    queries = [f"{step.meter.question} {wanted.get(reply.tool_call_id, '')}" for reply in observations]
    observations = await step.texts.shown(observations, queries)
    errors = sum(observation.status == "error" for observation in observations)
    step.meter.count(tool_calls=len(observations), tool_errors=errors)
    # What lies beside the text is the same again, and would be stored with each step.
    return [observation.model_copy(update={"artifact": None}) for observation in observations]


async def find(step: Step[SearchContext], run_id: str, queries: list[str]) -> tuple[list[SearchResult], list[str]]:
    """Run several queries at once. A failing one fails alone.

    Returns:
        The results of all queries, each once, and what went wrong, in words for the model.
    """
    search = engine(step, run_id)
    if search is None or not queries:
        return [], []
    step.meter.check()
    problems: list[str] = []

    async def run(query: str) -> list[SearchResult]:
        try:
            with telemetry.tool_call("search", query=query) as call:
                async with asyncio.timeout(step.meter.seconds_left):
                    results = await search(query)
                call.note(results=len(results))
        except (SearchFailed, TimeoutError) as error:
            step.meter.count(tool_calls=1, tool_errors=1)
            problem = str(error) or sentence(step.meter.limit("max_seconds"))
            step.emit("search", query=query, results=0, error=problem)
            problems.append(f"{query}: {problem}")
            return []
        step.meter.count(tool_calls=1)
        step.emit("search", query=query, results=len(results))
        return results

    batches = await at_once([run(query) for query in queries])
    share = step.texts.most_shown // len(queries)
    unique: dict[tuple[str, str], SearchResult] = {}
    for batch, query in zip(batches, queries, strict=True):
        for result in await step.texts.fit_found(batch, query, share):
            unique[result["url"], result["content"]] = result
    # Sorted, since queries at once fail in an order that is another one each time.
    return list(unique.values()), sorted(problems)
