"""The strategies as tools of the Model Context Protocol, at `/mcp`: a question in; the answer, outcome and usage out.

No state is kept between two requests, so any process may answer each of them.
"""

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolResult, TextContent, Tool
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from reflective_agents.serve.answering import Answering, identify
from reflective_agents.serve.chat_request import ChatMessage, ChatRequest
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import ServerApi, failure
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import settings_of, strategy_names

SHOWN = ("answer", "structured_response", "outcome", "usage")


class Mcp:
    """The application behind `/mcp`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope)
        try:
            identify(request)
        except Refused as refusal:
            return await refusal.response()(scope, receive, send)
        # One for each request: it can be run once only, and the tools need the key of this request.
        manager = StreamableHTTPSessionManager(_server(request), stateless=True, json_response=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def _server(request: Request) -> Server[JsonObject, Request]:
    server: Server[JsonObject, Request] = Server("reflective-agents")

    @server.list_tools()  # type: ignore[no-untyped-call,untyped-decorator]
    async def list_tools() -> list[Tool]:
        return [tool(name) for name in strategy_names() if policy().offers(name)]

    @server.call_tool()  # type: ignore[untyped-decorator]
    async def call_tool(name: str, arguments: JsonObject) -> CallToolResult:
        return await call(ServerApi(request), name, arguments)

    return server


def tool(strategy: str) -> Tool:
    """Describe a strategy as a tool."""
    schema = settings_of(strategy)
    names = ", ".join(schema.model_fields)
    settings = {"type": "object", "description": f"Settings of the strategy, by their names: {names}."}
    question = {"type": "string", "description": "The question or the task, whole: the tool sees nothing else."}
    properties = {"question": question, "settings": settings}
    input_schema = {"type": "object", "properties": properties, "required": ["question"]}
    return Tool(name=strategy, description=f"{schema.does} Use it when {schema.use_when}.", inputSchema=input_schema)


async def call(api: ServerApi, strategy: str, arguments: JsonObject) -> CallToolResult:
    """Run a strategy, and return its answer with the outcome and the usage; what fails is an error of the tool."""
    request = ChatRequest(
        model=strategy,
        messages=[ChatMessage(role="user", content=arguments["question"])],
        settings=arguments.get("settings") or {},
    )
    run = Answering(api, request)
    try:
        await run.start()
        result = await run.result()
        if refusal := failure(result):
            raise refusal
    except Refused as refusal:
        return CallToolResult(content=[TextContent(type="text", text=str(refusal))], isError=True)
    output = {name: result.output[name] for name in SHOWN if name in result.output}
    answer = TextContent(type="text", text=str(output["answer"]))
    return CallToolResult(content=[answer], structuredContent=output)


route = Route("/mcp", Mcp())
