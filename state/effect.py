"""Where a setting has an effect, declared in its type: given elsewhere, it is refused instead of ignored."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Applies(NamedTuple):
    """Marks a setting that has an effect only where `when` is true of all settings; `where` says so in words."""

    where: str
    when: Callable[[Any], bool]


class InRuns(NamedTuple):
    """Marks a setting that has an effect in runs of a strategy only, not in a middleware."""

    instead: str


class Replication(NamedTuple):
    """Marks a setting that serves to repeat what a paper measured: `state.groups` shows it with those for research."""

    paper: str


IN_ENVIRONMENT = Applies("in an environment", lambda settings: settings.environment is not None)
ON_OPEN_QUESTIONS = Applies(
    "on open questions, without an environment", lambda settings: getattr(settings, "environment", None) is None
)
WITHOUT_OWN_AGENT = Applies(
    "without an agent of your own, which has its own", lambda settings: getattr(settings, "agent", None) is None
)


def only_with(name: str, *values: object) -> Applies:
    """Mark a setting that has an effect only while another one has one of these values; without any, any value."""
    if not values:
        return Applies(f"with {name}", lambda settings: bool(getattr(settings, name)))
    where = " or ".join(f"{name}={value}" for value in values)
    return Applies(f"with {where}", lambda settings: getattr(settings, name) in values)
