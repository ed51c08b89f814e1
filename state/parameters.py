"""Parameters of requests to chat models, as settings give them."""

from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.policy import Operator

_OURS = {
    "max_tokens": "max_answer_tokens",
    "messages": "",
    "model": "model",
    "n": "",
    "response_format": "structured",
    "stream": "",
    "temperature": "temperature",
    "timeout": "call_timeout",
    "tool_choice": "",
    "tools": "",
}
"""Parameters that a strategy decides on itself, with the setting for each that has one."""

_LANGCHAINS = {"callbacks", "metadata", "run_id", "run_name", "tags"}
"""Arguments of a chat model in LangChain that no request has, and that are given otherwise."""

BEYOND_OPENAI = ("top_k", "min_p", "repeat_penalty", "repetition_penalty")
"""Parameters of sampling that OpenAI does not have, and its client does not know; other servers take them."""
_HARMLESS = {"frequency_penalty", "presence_penalty", "seed", "top_p", *BEYOND_OPENAI}
"""Parameters that change what a model writes, and nothing else: anybody may set them on a server."""

SAMPLING = Operator(lambda parameters: parameters.keys() <= _HARMLESS)


def check_parameters(parameters: JsonObject) -> JsonObject:
    """Refuse parameters that a strategy decides on itself, and what a run is told by its configuration.

    Raises:
        ValueError: if there is one.
    """
    for name in sorted(parameters.keys() & _LANGCHAINS):
        raise ValueError(f"{name} belongs to the run's configuration")
    for name in sorted(parameters.keys() & _OURS.keys()):
        raise ValueError(f"set {_OURS[name]} instead of {name}" if _OURS[name] else f"{name} is the strategy's")
    return parameters
