"""Says which libraries of an extra are missing, before anything is run."""

from importlib.util import find_spec

from reflective_agents.state.errors import Misuse

STATISTICS, FRAMES = ("scipy",), ("pyarrow",)


def need(*libraries: str, extra: str = "evals") -> None:
    """Refuse to begin what could not be ended.

    Args:
        libraries: What is needed.
        extra: The extra that brings them.

    Raises:
        Misuse: if one of the libraries is not installed.
    """
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        named = ", ".join(missing)
        raise Misuse(f"{named} missing: in the project's folder, run: .venv/bin/pip install -e '.[{extra}]'")
