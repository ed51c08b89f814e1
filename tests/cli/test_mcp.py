"""`reflect mcp`, as a desktop client starts it."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reflective_agents.state.settings import strategy_names

if TYPE_CHECKING:
    from mcp import ClientSession

pytestmark = pytest.mark.process
OFFLINE = {"model": "offline"}


@asynccontextmanager
async def connected(home: Path) -> "AsyncIterator[ClientSession]":
    from mcp import ClientSession, StdioServerParameters  # takes seconds to load
    from mcp.client.stdio import stdio_client

    command = ["-m", "reflective_agents.cli", "mcp"]
    server = StdioServerParameters(command=sys.executable, args=command, env={"REFLECT_HOME": str(home)})
    errors = home / "errors"
    with errors.open("w") as log:
        async with stdio_client(server, log) as (read, write), ClientSession(read, write) as session:
            about = await session.initialize()
            assert about.serverInfo.version == version("reflective-agents")
            yield session
    assert errors.read_text() == ""


def text(result: Any) -> str:
    return str(result.content[0].text)


@pytest.mark.thorough
def test_it_ends_with_its_client(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reflective_agents.cli", "mcp"]
    environment = {**os.environ, "REFLECT_HOME": str(tmp_path)}
    ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.thorough
def test_a_line_that_is_no_text_ends_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reflective_agents.cli", "mcp"]
    environment = {**os.environ, "REFLECT_HOME": str(tmp_path)}
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(b"\xff\xfe\n" + json.dumps(begin).encode() + b"\n")
        server.stdin.flush()
        assert b'"method":"notifications/message"' in server.stdout.readline()
        assert json.loads(server.stdout.readline())["id"] == 1
        server.stdin.close()
        assert server.wait(100) == 0


async def test_strategies_are_tools_that_tell_their_progress(tmp_path: Path) -> None:
    updates: list[tuple[float, str]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        updates.append((progress, message or ""))

    async with connected(tmp_path) as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        settings = tools["lats"].inputSchema["properties"]["settings"]["properties"]
        assert [*tools] == [*strategy_names()]
        assert settings["max_expansions"]["maximum"] == 10_000
        call = {"question": "What is reflexion?", "settings": OFFLINE, "thread": "tides"}
        first = await session.call_tool("chain_of_thought", call, progress_callback=tell)
        assert not first.isError
        assert first.structuredContent
        assert first.structuredContent["usage"]["model_calls"] == 1
        assert [number for number, _ in updates] == [*range(1, len(updates) + 1)]
        assert (updates[0][1].split(":")[0], updates[-1][1].split(":")[0]) == ("begin", "end")
        other = await session.call_tool("reflection", call)
        assert other.isError
        assert "tides" in text(other)
        wrong = await session.call_tool("chain_of_thought", {"question": "Why?", "settings": {"samples": 0}})
        assert wrong.isError
        assert "samples" in text(wrong) or "minimum" in text(wrong)


@pytest.mark.thorough
async def test_a_thread_goes_on_in_another_process(tmp_path: Path) -> None:
    call = {"question": "What is reflexion?", "settings": OFFLINE, "thread": "tides"}
    async with connected(tmp_path) as session:
        await session.call_tool("chain_of_thought", call)
    async with connected(tmp_path) as session:
        again = await session.call_tool("chain_of_thought", {**call, "question": "What did I ask?"})
        assert not again.isError
