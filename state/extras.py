"""Libraries that only some runs need: an extra of the project brings them, and the error without them names it."""

from importlib.util import find_spec

from reflective_agents.state.errors import Misuse


def need(*libraries: str, extra: str, purpose: str) -> None:
    """Refuse to begin what could not be done.

    Args:
        libraries: The modules that are needed; they are not loaded.
        extra: The extra that brings them.
        purpose: What needs them, as the subject of the error's sentence.

    Raises:
        Misuse: if one of them is not installed.
    """
    if missing := [name for name in libraries if find_spec(name) is None]:
        raise Misuse(f"{purpose} needs {', '.join(missing)}: {how_to_install(extra)}")


def need_for_memory() -> None:
    """Refuse to begin what remembers.

    Raises:
        Misuse: if what the extra `memory` brings is not installed.
    """
    need("numpy", "numkong", extra="memory", purpose="a memory")


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'reflective-agents[{extra}]'"
