"""How nodes search: the engine of the run, its tool, and running what a model calls."""

import asyncio
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import BaseTool

import telemetry
from nodes.step import Step
from state.context import SearchContext
from state.errors import SearchFailed
from state.sources import SearchResult
from tools.run import run_tool_calls
from tools.search import Search, cached, choose_search, make_search, search_tool


def engine(step: Step[Any], run_id: str) -> Search | None:
    """The search engine of this run, whose results are kept for its duration; None if the settings say so."""
    context: SearchContext = step.context
    kind, _ = choose_search(context.search)
    search = make_search(kind, context.corpus, timeout=context.call_timeout)
    return cached(search, run_id) if search else None


def search_tools(step: Step[Any], run_id: str) -> list[BaseTool]:
    """The tools that an agent of this run may call."""
    search = engine(step, run_id)
    return [search_tool(search)] if search else []


async def act(step: Step[Any], message: AIMessage, tools: list[BaseTool]) -> list[AnyMessage]:
    """Run all tool calls of a message at once. Each is answered; what goes wrong is an answer too."""
    step.meter.check()
    observations = await run_tool_calls(message, tools, timeout=min(step.context.call_timeout, step.meter.seconds_left))
    errors = sum(observation.status == "error" for observation in observations)
    step.meter.count(tool_calls=len(observations), tool_errors=errors)
    return [observation.model_copy(update={"artifact": None}) for observation in observations]


async def find(step: Step[Any], run_id: str, queries: list[str]) -> tuple[list[SearchResult], list[str]]:
    """Run several queries at once. A failing one fails alone.

    Returns:
        The results of all queries, each once, and what went wrong, in words for the model.
    """
    search = engine(step, run_id)
    if search is None or not queries:
        return [], []
    step.meter.check()
    problems: list[str] = []

    async def one(query: str) -> list[SearchResult]:
        try:
            with telemetry.tool_call("search", query=query) as call:
                async with asyncio.timeout(step.meter.seconds_left):
                    results = await search(query)
                call.note(results=len(results))
        except (SearchFailed, TimeoutError) as error:
            step.meter.count(tool_calls=1, tool_errors=1)
            problem = str(error) or f"max_seconds={step.meter.max_seconds:g} reached"
            step.emit("search", query=query, results=0, error=problem)
            problems.append(f"{query}: {problem}")
            return []
        step.meter.count(tool_calls=1)
        step.emit("search", query=query, results=len(results))
        return results

    found = await asyncio.gather(*(one(query) for query in queries))
    unique = {(result["url"], result["content"]): result for results in found for result in results}
    return list(unique.values()), sorted(problems)
