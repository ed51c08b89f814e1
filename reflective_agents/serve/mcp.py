"""The strategies as tools of the Model Context Protocol, at `/mcp`.

No state is kept between two requests, so any process may answer each of them. Who wants to be told of progress is
answered with a stream of events, others with a JSON object.
"""

from functools import partial
from uuid import NAMESPACE_URL, uuid5

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolResult
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from reflective_agents.serve.answering import Answering, identify
from reflective_agents.serve.bodies import replayed
from reflective_agents.serve.chat_parts import ChatMessage
from reflective_agents.serve.chat_request import ChatRequest
from reflective_agents.serve.keys import user_of
from reflective_agents.serve.mcp_tools import Progress, error_of, mcp_server, result_of
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.runs import Result, ServerApi, Token, failure
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import strategy_names

_WANTS_PROGRESS = b'"progressToken"'


class Mcp:
    """The application behind `/mcp`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            identify(request)
        except Refused as refusal:
            return await refusal.response()(scope, receive, send)
        body = await request.body()
        offered = [name for name in strategy_names() if policy().offers(name)]
        server = mcp_server(offered, partial(call, request), policy().settings)
        # One for each request: it can be run once only, and the tools need the key of this request.
        manager = StreamableHTTPSessionManager(server, stateless=True, json_response=_WANTS_PROGRESS not in body)
        async with manager.run():
            await manager.handle_request(scope, replayed(body, receive), send)


async def call(request: Request, strategy: str, arguments: JsonObject, progress: Progress) -> CallToolResult:
    """Run a strategy, and return its answer with the outcome and the usage; what fails is an error of the tool."""
    chat = ChatRequest(
        model=strategy,
        messages=[ChatMessage(role="user", content=arguments["question"])],
        settings=arguments.get("settings") or {},
        thread_id=_thread(request, strategy, arguments.get("thread")),
    )
    run = Answering(ServerApi(request), chat)
    try:
        await run.start()
        async for part in run.parts():
            if isinstance(part, Result):
                if refusal := failure(part):
                    return error_of(refusal)
                return result_of(part.output)
            if not isinstance(part, Token):
                await progress(part)
    except Refused as refusal:
        return error_of(refusal)
    raise AssertionError("a run ends with its result")


def _thread(request: Request, strategy: str, name: str | None) -> str | None:
    """Return the thread that a user calls by a name: each user has names of his own, and each strategy."""
    return None if name is None else str(uuid5(NAMESPACE_URL, f"mcp:{user_of(request.headers)}:{strategy}:{name}"))


route = Route("/mcp", Mcp())
