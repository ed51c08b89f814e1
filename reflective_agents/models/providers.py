"""The one door to chat models: a string names the provider and the model."""

import asyncio
import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from pydantic import SecretStr

from reflective_agents.models.event_loops import Loop, for_this_loop, load_certificates, loops, of_this_loop, quiet_copy
from reflective_agents.models.faults import refusals
from reflective_agents.offline import NOTE, OfflineChatModel
from reflective_agents.state.context import Context, Model
from reflective_agents.state.errors import MissingKey, UnknownModel
from reflective_agents.state.extras import need
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.wrapped_models import configured, is_configurable
from reflective_agents.text.spelling import similar_names

if TYPE_CHECKING:
    from langchain_openai import ChatOpenAI

DEFAULT_OPENAI = "openai:gpt-4.1-mini"
OFFLINE = "offline"
PROVIDERS = (OFFLINE, "openai", "ollama", "anthropic")
"""What may have been meant by a misspelt provider."""
OLLAMA_PORT = 11434
MOST_CONFIGURED = 100
"""Most models of an event loop that runs have configured and that are kept."""
HINT = (
    "write <provider>:<model>, such as openai:gpt-4.1-mini or ollama:llama3.2, and set the provider's key; or offline"
)


def choose_model(model: str | BaseChatModel | None) -> tuple[str | BaseChatModel, str]:
    """Decide which model is meant.

    Args:
        model: What the settings say: a model string, a chat model object, or None.

    Returns:
        The model string or object, and why it was chosen, in words for the user.

    Raises:
        UnknownModel: if OPENAI_BASE_URL names a server, and nothing names its model.
    """
    if model is not None:
        return model, "as set"
    if os.environ.get("MODEL"):
        return os.environ["MODEL"], "from MODEL"
    if os.environ.get("OPENAI_API_KEY"):
        return DEFAULT_OPENAI, "because OPENAI_API_KEY is set"
    if address := os.environ.get("OPENAI_BASE_URL"):
        raise UnknownModel(
            f"OPENAI_BASE_URL is set to {address}, but no model is named: set MODEL=openai:<the server's model>, or "
            "MODEL=offline"
        )
    return OFFLINE, "because neither MODEL nor OPENAI_API_KEY is set"


def describe_model(model: BaseChatModel) -> dict[str, str]:
    """Describe the model that gave an answer, for its metadata; the offline model adds a note."""
    name = str(getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__)
    return {"model_name": name, "note": NOTE} if isinstance(model, OfflineChatModel) else {"model_name": name}


def get_model(
    model: str | BaseChatModel | None, *, max_answer_tokens: int = 2048, call_timeout: float = 120
) -> BaseChatModel:
    """Make the chat model that a setting names.

    Args:
        model: `openai:<model>`, `ollama:<model>` (the server of OLLAMA_HOST), `<provider>:<model>` for any other
            provider of `init_chat_model`, `offline`, a chat model object (made ready for the running event loop), or
            None for the default.
        max_answer_tokens: Most tokens of one answer.
        call_timeout: Seconds after which the client gives a call up.

    Raises:
        UnknownModel: if the string names no provider that is installed.
        MissingKey: if the provider needs a key that is not in the environment.
    """
    chosen, _ = choose_model(model)
    if not isinstance(chosen, str):
        return for_this_loop(_configured(chosen) if is_configurable(chosen) else chosen)
    loop = of_this_loop()
    environment = tuple(os.environ.get(name) for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST"))
    key = (chosen, max_answer_tokens, call_timeout, *environment)
    if key not in loop.models:
        made = loop.models[key] = _make(chosen, max_answer_tokens, call_timeout, loop)
        loop.quiet[id(made)] = quiet_copy(made)
    return loop.models[key]


def model_for(context: Context, model: Model) -> BaseChatModel:
    """Make the chat model that a setting names, with the answers and the timeout that the settings allow.

    Args:
        context: The settings of the run.
        model: The model, as `get_model` takes it.
    """
    return get_model(model, max_answer_tokens=context.max_answer_tokens, call_timeout=context.call_timeout)


def _configured(model: Runnable[LanguageModelInput, AIMessage]) -> BaseChatModel:
    """Return what the config of this run makes of a configurable model; the same object for the same choice."""
    values: JsonObject = ensure_config().get("configurable") or {}
    chosen = {name: values[name] for name in sorted(values) if not _is_langgraphs(name)}
    config = RunnableConfig(configurable=chosen)
    # The model lies in the entry beside what was made of it, so that its id cannot pass to another object.
    made, key = of_this_loop().configured, (id(model), repr(chosen))
    if key not in made:
        if len(made) >= MOST_CONFIGURED:
            # Rather made anew than kept for ever: a server may be sent any number of choices.
            made.clear()
        made[key] = (model, configured(model, config))
    return made[key][1]


def _is_langgraphs(name: str) -> bool:
    """Tell whether a value of a config is LangGraph's own, and not one that a caller has chosen."""
    # These differ from run to run, and would have each run make a model of its own.
    return name.startswith(("__", "langgraph_", "checkpoint_")) or name in ("thread_id", "run_id")


async def load_client(model: str | BaseChatModel | None) -> None:
    """Load the client that the model of a setting needs, so that the event loop goes on meanwhile: OpenAI's takes a
    second, once."""
    chosen, _ = choose_model(model)
    loaded = _load_openai.cache_info().currsize
    if isinstance(chosen, str) and chosen.startswith(("openai:", "ollama:")) and not loaded:
        await asyncio.to_thread(_load_openai)


@cache
def _load_openai() -> None:
    for name in ("langchain_openai", "openai.resources.chat"):  # the second is what the first call would load
        import_module(name)
    load_certificates()


def _make(model: str, max_answer_tokens: int, call_timeout: float, loop: Loop) -> BaseChatModel:
    if model == OFFLINE:
        need("markdown_it", extra="documents", purpose="the offline model")
        return OfflineChatModel(max_tokens=max_answer_tokens)
    provider, colon, name = model.partition(":")
    if colon and not (provider and name):
        raise UnknownModel(_unusable(model))
    if provider == "openai" and name:
        return _openai(name, max_answer_tokens, call_timeout, loop)
    if provider == "ollama" and name:
        return _served(name, "ollama", ollama_url(), max_answer_tokens, call_timeout, loop)
    return _from_langchain(model, max_answer_tokens, call_timeout)


def _openai(name: str, max_answer_tokens: int, call_timeout: float, loop: Loop) -> "ChatOpenAI":
    key = os.environ.get("OPENAI_API_KEY")
    own_server = os.environ.get("OPENAI_BASE_URL")
    if not key and not own_server:
        raise MissingKey(
            f"openai:{name} needs OPENAI_API_KEY in the environment (or OPENAI_BASE_URL for a server of your own); "
            "without either, use the model offline"
        )
    return _served(name, key or "none", None, max_answer_tokens, call_timeout, loop)


def ollama_url() -> str:
    """Return where Ollama speaks OpenAI's protocol: OLLAMA_HOST, or this machine.

    OLLAMA_HOST means what it means to Ollama: an address to listen on, with port 11434 unless it names a port or a
    scheme. One for all interfaces is reached at this machine's own.
    """
    setting = (os.environ.get("OLLAMA_HOST") or "").strip().strip("\"'")
    scheme, _, rest = setting.rpartition("://")
    address, slash, path = rest.partition("/")
    # A bare IPv6 address: `urlsplit` would take its last group for the port.
    if address.count(":") > 1 and not address.startswith("["):
        address = f"[{address}]"
    parts = urlsplit(f"//{address}")
    port = parts.port or (None if scheme else OLLAMA_PORT)
    # 0.0.0.0 and :: say where to listen, and cannot be connected to on every system.
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(parts.hostname or "", parts.hostname)
    shown = f"[{host}]" if ":" in str(host) else host
    return f"{scheme or 'http'}://{shown}{f':{port}' if port else ''}{slash}{path}".rstrip("/") + "/v1"


def is_ollama(model: BaseChatModel) -> bool:
    """Tell whether a model is served by Ollama."""
    return type(model).__name__ == "ChatOllama" or str(getattr(model, "openai_api_base", "")) == ollama_url()


def _served(
    name: str, key: str, address: str | None, max_answer_tokens: int, call_timeout: float, loop: Loop
) -> "ChatOpenAI":
    """Make a model that is served over OpenAI's protocol; None is the server of OPENAI_BASE_URL, else OpenAI."""
    # These cost a second, and offline runs none.
    from reflective_agents.models.chat_openai import CompatibleChatOpenAI
    from reflective_agents.models.openai_replies import read_beside_loop

    made = CompatibleChatOpenAI(
        model=name,
        api_key=SecretStr(key),
        base_url=address,
        # Retries of the client's own would escape the meter.
        max_retries=0,
        timeout=call_timeout,
        max_completion_tokens=max_answer_tokens,
        # With a base_url of its own LangChain would not ask for the usage of a stream.
        stream_usage=True,
        http_async_client=loop.client,
    )
    read_beside_loop(made.root_async_client)
    return made


def expect_many_calls() -> None:
    """Prepare for many calls at once in the running event loop. Say so before the first, and close the models at the
    end. Where aiohttp is not installed this changes nothing."""
    of_this_loop().many_calls = find_spec("aiohttp") is not None


async def close_models() -> None:
    """Close the connections that models have opened in the running event loop. They open again when needed."""
    loop = loops.pop(asyncio.get_running_loop(), None)
    if loop is not None:
        await loop.close()


def _from_langchain(name: str, max_answer_tokens: int, call_timeout: float) -> BaseChatModel:
    from langchain.chat_models import init_chat_model  # costs half a second, and most runs do not need it

    # Retries of a client's own would escape the meter.
    options: JsonObject = {"max_retries": 0, "max_tokens": max_answer_tokens, "timeout": call_timeout}
    try:
        model = init_chat_model(name, **options)
    except ImportError as missing:
        raise UnknownModel(f"model {name!r}: {first_line(missing)}") from missing
    except refusals() as refused:
        raise UnknownModel(f"{_unusable(name)} ({first_line(refused)})") from refused
    if not isinstance(model, BaseChatModel):
        raise UnknownModel(f"model {name!r} is not a chat model: write <provider>:<model>")
    return model


def _unusable(model: str) -> str:
    """Say what to write in place of a model that cannot be used, and what was meant if that can be guessed."""
    provider, _, name = model.replace("/", ":", 1).partition(":")
    close = similar_names(provider.lower(), PROVIDERS)
    guess = f"{close[0]}:{name}" if close and name else OFFLINE if close == [OFFLINE] else model
    meant = "" if guess == model else f"did you mean {guess}? Else "
    return f"model {model!r} cannot be used: {meant}{HINT}"


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, or its name if it says nothing."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
