"""Which of the two servers this is."""

from importlib.util import find_spec

from starlette.exceptions import HTTPException

from reflective_agents.serve.refusals import Refused

IN_AEGRA = find_spec("aegra_api") is not None
"""Whether this is Aegra, not `langgraph dev`."""


def http_error(refusal: Refused) -> HTTPException:
    """Return what makes the server answer with a refusal. Aegra makes 500 of all that is not FastAPI's."""
    if not IN_AEGRA:
        return HTTPException(refusal.status, str(refusal))
    from fastapi import HTTPException as FastApiError

    error: HTTPException = FastApiError(refusal.status, str(refusal))
    return error
