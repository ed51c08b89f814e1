"""Chat models as LangChain wraps them: with fallbacks, retries, options, or fields chosen by each run."""

import sys
from typing import Any, NamedTuple, TypeGuard


class Unwrapped(NamedTuple):
    """A model within its wrappers: a name, a chat model object, or one that a run configures; None for the default."""

    model: Any
    fallbacks: list[Any]


def unwrap(value: Any) -> Unwrapped:
    """Take the wrappers off whose work the settings do: retries are those of a run, each of which is counted.

    Raises:
        ValueError: if there is more in it than a model; the text names the setting to use.
    """
    if value is None or isinstance(value, str):
        return Unwrapped(value or None, [])
    from langchain_core.language_models import BaseChatModel  # late, since most settings name their models
    from langchain_core.runnables import RunnableBinding
    from langchain_core.runnables.fallbacks import RunnableWithFallbacks
    from langchain_core.runnables.retry import RunnableRetry

    if isinstance(value, RunnableWithFallbacks):
        first, *others = map(unwrap, (value.runnable, *value.fallbacks))
        fallbacks = [*first.fallbacks]
        for other in others:
            fallbacks += [other.model, *other.fallbacks]
        return Unwrapped(first.model, fallbacks)
    if isinstance(value, RunnableRetry):
        return unwrap(value.bound)
    if isinstance(value, RunnableBinding):
        if value.kwargs:
            options = ", ".join(sorted(value.kwargs))
            raise ValueError(
                f"options are bound to the model ({options}): give the model alone, and options as "
                "model_parameters, tools as tools"
            )
        return unwrap(value.bound)
    if isinstance(value, BaseChatModel) or is_configurable(value):
        return Unwrapped(value, [])
    raise ValueError(
        "a model is a string such as 'openai:gpt-4.1' or 'offline', or a chat model object; of a chain give the model "
        f"alone (got {type(value).__name__})"
    )


def is_configurable(value: object) -> TypeGuard[Any]:
    """Tell whether a run's config decides what a model is: `configurable_fields` of a model or of `init_chat_model`."""
    from langchain_core.runnables.configurable import DynamicRunnable

    return isinstance(value, DynamicRunnable) or _is_initialized_late(value)


def _is_initialized_late(value: object) -> bool:
    # Not imported, which takes a while: who holds such a model has loaded its module.
    module = sys.modules.get("langchain.chat_models.base")
    return module is not None and isinstance(value, module._ConfigurableModel)


def configured(value: Any, config: Any) -> Any:
    """Return the model that the config of a run makes of a configurable one."""
    return value._model(config) if _is_initialized_late(value) else unwrap(value.prepare(config)[0]).model
