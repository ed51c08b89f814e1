"""`reflect mcp`: the strategies as tools of the Model Context Protocol, over stdin and stdout."""

import os
from contextlib import AsyncExitStack, aclosing
from typing import Any

import anyio
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult
from pydantic import ValidationError

from reflective_agents.cli.database import open_store
from reflective_agents.cli.threads import config_of, load, lock_thread, open_saver, read_thread
from reflective_agents.models.providers import close_models
from reflective_agents.serve.mcp_tools import Progress, error_of, mcp_server, result_of
from reflective_agents.state.errors import Misuse
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import settings_of, strategy_names


async def serve() -> None:
    """Answer the client at stdin until it leaves."""
    server = mcp_server(strategy_names(), call)
    # Streams of their own: the library closes them with the connection, and the command still has to flush its output.
    stdin = anyio.wrap_file(os.fdopen(os.dup(0), "r", encoding="utf-8", errors="replace"))
    stdout = anyio.wrap_file(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    try:
        async with stdio_server(stdin, stdout) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await close_models()


async def call(strategy: str, arguments: JsonObject, progress: Progress) -> CallToolResult:
    """Run a strategy in this process; a thread with a name is one of `reflect threads`."""
    try:
        output = await _run(strategy, arguments, progress)
    except (Misuse, ValidationError) as error:
        return error_of(error)
    outcome = output.get("outcome")
    if not outcome or output.get("answer") is None:
        return error_of(outcome["reason"] if outcome else "the run waits for a person: choose settings without one")
    return result_of(output)


async def _run(strategy: str, arguments: JsonObject, progress: Progress) -> JsonObject:
    settings = arguments.get("settings") or {}
    context = settings_of(strategy).model_validate(settings)
    question: Any = {"messages": [{"role": "user", "content": arguments["question"]}]}
    thread, output = arguments.get("thread"), JsonObject()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_store(context))
        saver = None
        if thread is not None:
            saver = await stack.enter_async_context(open_saver())
            await stack.enter_async_context(lock_thread(saver, thread))
        graph = load(strategy, saver, store)
        if thread is not None and saver is not None:
            await read_thread(graph, saver, thread)  # refuses that of another strategy
        config = config_of(thread or "", strategy, settings)
        parts: Any = graph.astream(question, config, context=context, stream_mode=["custom", "values"])
        async with aclosing(parts):
            async for mode, part in parts:
                if mode == "values":
                    output = part
                else:
                    await progress(part)
    return output
