"""The routes as `langgraph dev` mounts them, and the guard in front of all of its routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware

from reflective_agents.serve.bodies import Bodies
from reflective_agents.serve.completions import route as completions
from reflective_agents.serve.graphs import guard_graphs
from reflective_agents.serve.guard import Guard
from reflective_agents.serve.in_process import CallsItself
from reflective_agents.serve.live import routes as live_routes
from reflective_agents.serve.mcp import route as mcp
from reflective_agents.serve.messages import routes as messages
from reflective_agents.serve.models import routes as models
from reflective_agents.serve.policy import policy
from reflective_agents.serve.responses import routes as responses
from reflective_agents.telemetry.loop_guard import LoopGuard, log_held

policy().enforce()
guard_graphs()


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    """Say in the log what holds the event loop."""
    async with LoopGuard(log_held):
        yield


app = Starlette(
    routes=[*models, completions, *messages, *responses, *live_routes, mcp],
    middleware=[Middleware(Guard), Middleware(Bodies), Middleware(CallsItself)],
    lifespan=lifespan,
)
