"""What models can be asked for."""

import re

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableBinding

from reflective_agents.models.providers import describe_model
from reflective_agents.models.ways import ways_of
from reflective_agents.state.errors import UnknownModel
from reflective_agents.state.json_types import JsonObject

ChatModel = Runnable[LanguageModelInput, AIMessage]
"""A chat model, with or without tools bound to it."""


def takes_n(model: ChatModel) -> bool:
    """Tell whether one request may ask for several candidates."""
    base, _ = unbind(model)
    known = "n" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True
    return known and ways_of(base).n


def takes_seed(model: ChatModel) -> bool:
    """Tell whether a request may carry a seed."""
    base, _ = unbind(model)
    return "seed" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True


def takes_logprobs(model: ChatModel) -> bool:
    """Tell whether a request may ask for the reply's log-probabilities; OpenAI's reasoning models refuse that."""
    base, _ = unbind(model)
    known = "logprobs" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True
    return known and takes_stop(model) and ways_of(base).logprobs


def takes_stop(model: ChatModel) -> bool:
    """Tell whether a request may name texts that stop the reply; OpenAI's reasoning models refuse that."""
    base, _ = unbind(model)
    return not (base._llm_type == "openai-chat" and re.match(r"o\d|gpt-5", name_of(base)))


def unbind(model: ChatModel) -> tuple[BaseChatModel, JsonObject]:
    """Return the model itself, and the options that are bound to it.

    Raises:
        UnknownModel: if it is no chat model.
    """
    if isinstance(model, RunnableBinding):
        base, inner = unbind(model.bound)
        return base, {**inner, **model.kwargs}
    if not isinstance(model, BaseChatModel):
        raise UnknownModel(f"a chat model is needed, not {type(model).__name__}")
    return model, {}


def name_of(model: ChatModel) -> str:
    """Return the name under which a model is known."""
    base, _ = unbind(model)
    return describe_model(base)["model_name"]
