"""Says which libraries of the extra `evals` are missing, before anything is run."""

from importlib.util import find_spec

from state.errors import Misuse

STATISTICS = ("scipy",)
PAGE = ("matplotlib", "jinja2")


def need(*libraries: str) -> None:
    """Refuse to begin what could not be ended.

    Raises:
        Misuse: if one of the libraries is not installed.
    """
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        raise Misuse(f"{', '.join(missing)} missing: in the project's folder, run: .venv/bin/pip install -e '.[evals]'")
