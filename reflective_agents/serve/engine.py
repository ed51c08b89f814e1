"""Which of the two servers this is."""

from importlib.util import find_spec

from starlette.exceptions import HTTPException

IN_AEGRA = find_spec("aegra_api") is not None
"""Whether this is Aegra, not `langgraph dev`."""


def forbidden(reason: str) -> HTTPException:
    """Return what a graph raises so that the server answers 403. Aegra makes 500 of all that is not FastAPI's."""
    if not IN_AEGRA:
        return HTTPException(403, reason)
    from fastapi import HTTPException as Refusal

    refusal: HTTPException = Refusal(403, reason)
    return refusal
