"""Whose run this is."""

from langgraph.runtime import get_runtime

ANYBODY = "anybody"
"""The user of a server that asks for no keys."""


def authenticated_user() -> str | None:
    """Return the user whom the server has authenticated; None in Python, and on a server that asks for no keys."""
    server = get_runtime().server_info
    user = server.user.identity if server and server.user else ANYBODY
    return None if user == ANYBODY else user
