"""Environments of users, whose texts are cleaned as they come in."""

from collections.abc import Callable
from functools import partial
from typing import Any

from reflective_agents.environments.base import Environment, State, Task, Transition
from reflective_agents.text.clean import clean, clean_data


class Cleaned(Environment):
    """An environment of the user's, whose texts are cleaned. Attributes that it lacks are those of `Environment`.

    Args:
        inner: The environment. It need not be derived from `Environment`.
    """

    needs_gold = True  # the default for one that is not derived from `Environment`: it may need it

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute of the inner environment, or a method that cleans its result."""
        # Private names and what the object lacks are looked up here, where `Environment` has its defaults.
        if name in ("start", "step") or name.startswith("_") or not hasattr(self._inner, name):
            return super().__getattribute__(name)
        value = getattr(self._inner, name)
        return partial(_call_cleanly, value) if callable(value) else clean_data(value)

    def start(self, task: Task) -> State:
        """Return the state before the first action."""
        start = getattr(self._inner, "start", super().start)
        return clean_data(start(task))

    async def step(self, state: State, action: str) -> Transition:
        """Apply one action. The task stays as it is: `start` has cleaned it."""
        transition: Transition = await self._inner.step(state, action)
        # A task may hold whole articles, which need not be read again at each step.
        new = {name: part if name == "task" else clean_data(part) for name, part in transition.state.items()}
        return transition._replace(state=new, observation=clean(transition.observation))


def _call_cleanly(method: Callable[..., Any], *args: Any) -> Any:
    result = method(*args)
    return clean_data(result) if isinstance(result, str | list) else result


def cleaned(environment: Any) -> Environment:
    """Return an environment whose texts are cleaned; one that is `Cleaned` already as it is."""
    return environment if isinstance(environment, Cleaned) else Cleaned(environment)
