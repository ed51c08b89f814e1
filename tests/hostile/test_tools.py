"""Tools of strangers, as an MCP server sends them: what they declare, and what they answer."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool

from reflective_agents.graphs.react import graph as react
from reflective_agents.state.own_tools import MOST
from reflective_agents.state.settings.react import ReactContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from reflective_agents.tools.run import MAX_PARTS

pytestmark = pytest.mark.hostile
ONE: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}}


def sent(name: str = "t", schema: dict[str, Any] = ONE, answer: Any = "Done.") -> BaseTool:
    """Return a tool as langchain-mcp-adapters makes it."""

    async def call(**_: Any) -> Any:
        return answer

    return StructuredTool(name=name, description="Does it.", args_schema=schema, coroutine=call)


def doubling(levels: int) -> dict[str, Any]:
    """Return a schema each of whose definitions refers twice to the one before."""
    twice = {f"a{n}": {"properties": {key: {"$ref": f"#/$defs/a{n - 1}"} for key in "xy"}} for n in range(1, levels)}
    return {
        "type": "object",
        "properties": {"q": {"$ref": f"#/$defs/a{levels - 1}"}},
        "$defs": {"a0": {"type": "string"}, **twice},
    }


def deep(levels: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"q": deep(levels - 1)}} if levels else {}


DECLARED: dict[str, list[BaseTool]] = {
    "many": [sent(f"t{number}") for number in range(MOST + 1)],
    "doubling": [sent(schema=doubling(30))],
    "deep": [sent(schema=deep(100))],
    "wide": [sent(schema={"type": "object", "properties": {f"p{n}": {"enum": ["a", "b", "c"]} for n in range(9_000)}})],
    "elsewhere": [sent(schema={"type": "object", "properties": {"q": {"$ref": "http://127.0.0.1:9/x.json"}}})],
}


@pytest.mark.parametrize("name", DECLARED)
async def test_tools_that_declare_too_much_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="tools"):
        ReactContext.model_validate({"tools": DECLARED[name]})


def calling(name: str) -> FakeChatModel:
    def reply(request: Request) -> Reply:
        calls = [{"name": name, "args": {"q": "a"}, "id": "1"}]
        return (
            "Paris." if any(message.type == "tool" for message in request.messages) else AIMessage("", tool_calls=calls)
        )

    return FakeChatModel(reply=reply)


@pytest.fixture(scope="module", autouse=True)
def first() -> None:
    """Call a tool before the event loop is watched: LangChain loads what it needs for that."""
    context: Any = {"model": calling("t"), "tools": [sent()], "search": "none"}
    asyncio.run(react.ainvoke({"messages": [("user", "Where?")]}, context=context))


async def run(tools: list[BaseTool], name: str) -> Any:
    context: Any = {"model": calling(name), "tools": tools, "search": "none"}
    return await react.ainvoke({"messages": [("user", "Where?")]}, context=context)


@pytest.mark.parametrize("name", ["t7", "unknown"])
async def test_many_tools_hold_nothing(name: str) -> None:
    result = await run([sent(f"t{number}") for number in range(300)], name)
    (step,) = result["steps"]
    assert step["valid"] == (name == "t7")
    assert result["answer"] == "Paris."


async def test_a_schema_that_refers_to_itself_is_used() -> None:
    result = await run([sent(schema={"type": "object", "properties": {"q": {"$ref": "#"}}})], "t")
    assert result["steps"][0]["observation"] == "Done."


async def test_a_result_in_many_parts_is_cut() -> None:
    result = await run([sent(answer=[{"type": "text", "text": "x"}] * 20 * MAX_PARTS)], "t")
    assert result["steps"][0]["observation"] == "x" * MAX_PARTS
