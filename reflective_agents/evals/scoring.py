"""Which environment measures an answer to a task, and whether it is correct."""

from reflective_agents.environments.base import Environment, cleaned
from reflective_agents.environments.plain import PLAIN
from reflective_agents.environments.registry import get_environment


def world_of(environment: str | Environment, *, unsafe_code: bool = False) -> Environment:
    """Return the environment that measures answers.

    Args:
        environment: The name of a shipped one, "plain" for open questions, or an environment of your own.
        unsafe_code: Whether programs may run as plain processes where there is no sandbox.
    """
    if not isinstance(environment, str):
        return cleaned(environment)
    return PLAIN if environment == PLAIN.name else get_environment(environment, unsafe_code=unsafe_code)


def is_correct(world: Environment, scores: dict[str, float]) -> bool:
    """Return whether scores are those of a correct answer."""
    return scores.get(world.figure) == 1
