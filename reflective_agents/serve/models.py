"""The strategies as OpenAI's clients list models."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from reflective_agents.serve.answering import with_refusals
from reflective_agents.serve.chat_request import schema_of
from reflective_agents.serve.policy import policy
from reflective_agents.serve.refusals import Refused
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.settings import strategy_names


async def models(request: Request) -> Response:
    """List the strategies: each is a model."""
    offered = [name for name in strategy_names() if policy().offers(name)]
    return JSONResponse({"object": "list", "data": [_model(name) for name in offered]})


async def model(request: Request) -> Response:
    """Return one model: a strategy, also with a model for it."""
    name = request.path_params["model"]
    strategy = name.partition(":")[0]
    schema_of(strategy)
    if not policy().offers(strategy):
        raise Refused(f"{strategy} is not offered here", "model", status=404, code="model_not_found")
    return JSONResponse(_model(name))


def _model(name: str) -> JsonObject:
    return {"id": name, "object": "model", "created": 0, "owned_by": "reflective-agents"}


routes = [Route("/v1/models", with_refusals(models)), Route("/v1/models/{model:path}", with_refusals(model))]
