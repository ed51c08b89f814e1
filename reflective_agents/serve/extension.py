"""The routes as Aegra mounts them: it takes nothing but an application of FastAPI."""

from fastapi import FastAPI

from reflective_agents.serve.admission import watch_runs
from reflective_agents.serve.completions import route as completions
from reflective_agents.serve.live import routes as live_routes
from reflective_agents.serve.mcp import route as mcp
from reflective_agents.serve.messages import route as messages
from reflective_agents.serve.models import routes as models
from reflective_agents.serve.policy import policy
from reflective_agents.serve.responses import routes as responses

policy().enforce()
watch_runs()
app = FastAPI(title="reflective-agents", routes=[*models, completions, messages, *responses, *live_routes, mcp])
