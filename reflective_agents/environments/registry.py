"""The shipped environments by name, as settings and data sets name them."""

from reflective_agents.environments.arithmetic import Arithmetic
from reflective_agents.environments.base import Environment
from reflective_agents.environments.blocksworld import Blocksworld
from reflective_agents.environments.cleaned import cleaned
from reflective_agents.environments.crosswords import Crosswords
from reflective_agents.environments.fever import FactChecking
from reflective_agents.environments.game24 import Game24
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.programming import Programming
from reflective_agents.environments.questions import Questions
from reflective_agents.state.errors import Misuse
from reflective_agents.state.loading import load_named

ENVIRONMENTS: dict[str, type[Environment]] = {
    kind.name: kind for kind in (Questions, FactChecking, Game24, Crosswords, Programming, Blocksworld, Arithmetic)
}
"""The environments that a setting may name. Your own need not be here: give the object itself."""


def load_environment(path: str) -> Environment:
    """Make an environment of your own from the name of its class, such as `my_package.my_game:Guess`.

    Its module is looked for in the working directory too.

    Raises:
        Misuse: if there is no such class.
    """
    kind = load_named(path, "environment")
    try:
        made: Environment = kind()
    except TypeError as error:
        raise Misuse(f"environment {path!r}: {error}; name a class that needs no arguments") from error
    return made


def resolve_environment(environment: str | Environment, *, unsafe_code: bool = False) -> Environment:
    """Return the environment that measures the answers of an evaluation.

    Args:
        environment: The name of a shipped one, "plain" for open questions, or an environment of your own.
        unsafe_code: Whether programs may run as plain processes where there is no sandbox.
    """
    if not isinstance(environment, str):
        return cleaned(environment)
    return PLAIN if environment == PLAIN.name else get_environment(environment, unsafe_code=unsafe_code)


def get_environment(name: str, docstore: str | None = None, *, unsafe_code: bool = False) -> Environment:
    """Make the environment of this name.

    Args:
        name: one of `ENVIRONMENTS`.
        docstore: where articles come from: "wikipedia", a folder, a JSONL file, or None for those a task brings. Files
            are read at once, which blocks.
        unsafe_code: whether programs may run as plain processes where there is no sandbox.

    Raises:
        Misuse: if there is no such environment.
        BadCorpus: if the docstore cannot be read.
    """
    if name not in ENVIRONMENTS:
        raise Misuse(f"unknown environment {name!r}: choose one of {', '.join(ENVIRONMENTS)}")
    return ENVIRONMENTS[name].from_settings(docstore, unsafe_code)
