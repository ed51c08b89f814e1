"""Errors in the form that OpenAI's clients read."""

from starlette.responses import JSONResponse

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


MOST = 1_000
"""Most characters of a refusal, which may quote what a stranger has sent."""


class Refused(Exception):
    """Raised when a request is not, or cannot be, answered.

    Args:
        message: What happened and what to do; it is cut in the middle where it is too long.
        param: The part of the request that is refused.
        status: The HTTP status.
        code: The kind of error, for programs.
    """

    def __init__(self, message: str, param: str | None = None, *, status: int = 400, code: str | None = None) -> None:
        super().__init__(message if len(message) <= MOST else f"{message[: MOST // 2]} ... {message[-MOST // 4 :]}")
        self.param, self.status, self.code = param, status, code

    def body(self) -> dict[str, dict[str, str | None]]:
        """Return the error as OpenAI's clients read it."""
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        """Return the error as an HTTP response."""
        return JSONResponse(self.body(), self.status)


class NoAnswer(Refused):
    """Raised when a run has ended without an answer: asked for it again, the server would say the same."""
