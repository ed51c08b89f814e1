"""Which of the two servers this is: Aegra or `langgraph dev`."""

from importlib.util import find_spec

from starlette.exceptions import HTTPException

from reflective_agents.serve.refusals import Refused

IN_AEGRA = find_spec("aegra_api") is not None
"""Whether this is Aegra, not `langgraph dev`."""


def http_error(refusal: Refused) -> HTTPException:
    """Return the exception by which the server answers with a refusal. Aegra answers 500 to any but FastAPI's."""
    if not IN_AEGRA:
        return HTTPException(refusal.status, str(refusal))
    from fastapi import HTTPException as FastApiError

    error: HTTPException = FastApiError(refusal.status, str(refusal))
    return error
