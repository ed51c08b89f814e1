"""The routes as Aegra mounts them: it takes nothing but an application of FastAPI."""

from fastapi import FastAPI

from reflective_agents.serve.admission import watch_runs
from reflective_agents.serve.chat import routes
from reflective_agents.serve.live import routes as live_routes
from reflective_agents.serve.mcp import route as mcp
from reflective_agents.serve.policy import policy

policy().enforce()
watch_runs()
app = FastAPI(title="reflective-agents", routes=[*routes, *live_routes, mcp])
