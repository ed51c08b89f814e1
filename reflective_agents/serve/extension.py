"""The routes as Aegra mounts them: it takes nothing but an application of FastAPI."""

from fastapi import FastAPI

from reflective_agents.models.account import charge_to
from reflective_agents.serve.admission import watch_runs
from reflective_agents.serve.completions import route as completions
from reflective_agents.serve.in_process import is_own
from reflective_agents.serve.live import routes as live_routes
from reflective_agents.serve.mcp import route as mcp
from reflective_agents.serve.messages import routes as messages
from reflective_agents.serve.metrics import CountingAccount, count_runs
from reflective_agents.serve.metrics import route as metrics
from reflective_agents.serve.models import routes as models
from reflective_agents.serve.policy import policy
from reflective_agents.serve.responses import routes as responses
from reflective_agents.telemetry import spans

policy().enforce()
charge_to(CountingAccount(policy().daily_quota()))
count_runs()
watch_runs()
app = FastAPI(
    title="reflective-agents",
    routes=[*models, completions, *messages, *responses, *live_routes, mcp, metrics],
    # A request has one span, without those of the server's own requests, and without texts of exceptions.
    telemetry={
        "tracer_provider": spans.own_provider(),
        "exclude": is_own,
        "operation_spans": False,
        "metrics": False,
        "logs": False,
    },
)
