"""What can go wrong with a provider: which faults there are, which are worth a retry, and how long to wait for it."""

import asyncio
import sys
import sysconfig
import traceback
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from pathlib import Path

import httpx
import httpx2
import langchain_core
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelTimeoutError,
)
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential
from tenacity.wait import wait_base

from reflective_agents.models.meter import Meter
from reflective_agents.state.errors import LimitReached, Misuse
from reflective_agents.state.reply_bytes import TooLarge
from reflective_agents.state.secrets import redacted

ATTEMPTS = 3
LONGEST_WAIT = 60.0
WAIT: wait_base = wait_random_exponential(multiplier=0.5, max=8)
"""How long to wait before the next attempt, where the provider does not say."""

_DATA_FAULTS = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What reading bad data raises, and any code that is wrong."""
_NAMED = (TypeError, ValueError, KeyError, IndexError, AttributeError, RecursionError)
"""Errors whose text says little without their names."""
_FAULTS = (ModelError, httpx.HTTPError, httpx2.HTTPError, OSError, TimeoutError, *_DATA_FAULTS)


class EmptyReply(ValueError):
    """Raised when a provider answers with neither text nor tool calls."""


class CutOff(EmptyReply):
    """Raised when a stream ends before its reply does."""


class OnlyThought(EmptyReply):
    """Raised when a model was cut off before it came to its answer."""


def model_faults() -> tuple[type[Exception], ...]:
    """Return what a client raises when a provider fails or sends bad data; never an interrupt or a cancellation."""
    return (*_FAULTS, *openai_errors("OpenAIError"))


def refusals() -> tuple[type[Exception], ...]:
    """Return what the constructor of a client raises when its settings are unusable."""
    return (ValueError, *openai_errors("OpenAIError"))


def openai_errors(*names: str) -> tuple[type[Exception], ...]:
    """Return errors of OpenAI's client, by name; none where it was never loaded, and so cannot have raised any."""
    if "openai" not in sys.modules:
        return ()
    client = import_module("openai")  # waits until it is whole, where another thread is loading it
    return tuple(getattr(client, name) for name in names)


def is_of_users_code(fault: BaseException) -> bool:
    """Tell whether an error comes from code of the user's own, such as a chat model's, and not from a provider.

    It is where the innermost frame lies outside of the standard library, of installed packages and of this project.
    """
    if not isinstance(fault, _DATA_FAULTS) or isinstance(fault, OSError | EmptyReply | ModelError | Misuse):
        return False
    # From the innermost frame outwards: libraries that the user's code calls raise on its behalf.
    frames = [frame.f_globals for frame, _ in traceback.walk_tb(fault.__traceback__)]
    for names in reversed(frames):
        package = str(names.get("__name__")).partition(".")[0]
        if package not in sys.stdlib_module_names and not str(names.get("__file__")).startswith(_installed()):
            return package != "reflective_agents"
    return False


def _installed() -> tuple[str, ...]:
    """Return the folders of installed packages: Python's, and wherever else LangChain is, such as in a user's own."""
    paths = sysconfig.get_paths()
    return (paths["purelib"], paths["platlib"], str(Path(langchain_core.__file__).parents[1]))


def retrying(meter: Meter) -> AsyncRetrying:
    """Make a retry policy: up to three attempts, waits as the provider asks, never past the run's deadline."""

    async def sleep(seconds: float) -> None:
        if asyncio.get_running_loop().time() + seconds >= meter.deadline:
            raise LimitReached(meter.limit("max_seconds", round(seconds)), "the provider asks to wait that long")
        await asyncio.sleep(seconds)

    return AsyncRetrying(
        stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception(is_transient), wait=_wait, sleep=sleep, reraise=True
    )


def is_transient(fault: BaseException) -> bool:
    """Tell whether the same request may succeed when it is sent again."""
    if is_of_users_code(fault):
        return False
    if "failed_generation" in str(getattr(fault, "body", "")):
        return True  # what the server refuses is what its model has written, and not the request
    if isinstance(fault, ModelError):
        return bool(fault.is_retryable)
    if status := status_of(fault):
        return status in (408, 409, 429) or status >= 500
    malformed = (*openai_errors("APIError"), EmptyReply, TimeoutError, OSError)
    return isinstance(fault, (*malformed, httpx.TransportError, httpx2.TransportError, *_DATA_FAULTS))


def status_of(fault: BaseException) -> int | None:
    """Return the HTTP status of a fault: that of the response, or what an error in the midst of a stream gives as its
    code; None if there is none."""
    status: object = getattr(fault, "status_code", None)
    if status is None and isinstance(fault, openai_errors("APIError")):
        # An error in the midst of a stream has no response: servers give the status, or a word, as its code.
        status = getattr(fault, "code", None)
    number = int(str(status)) if str(status).isdecimal() else 0
    return number if 400 <= number < 600 else None


def is_refusal(fault: BaseException) -> bool:
    """Tell whether the provider rejects the request in this form, so that it has to be put in another way."""
    # 422 is how FastAPI refuses a field, 501 how llama.cpp answers to what it was started without.
    if status_of(fault) in (400, 413, 422, 501):
        return True
    return isinstance(fault, ModelInvalidRequestError | ContextOverflowError) or "does not support" in str(fault)


def never_connected(fault: BaseException | None) -> bool:
    """Tell whether the provider was never reached."""
    kinds = (httpx.ConnectError, httpx.ConnectTimeout, httpx2.ConnectError, httpx2.ConnectTimeout)
    while fault is not None:
        if isinstance(fault, (*kinds, ConnectionRefusedError)):
            return True
        # Clients wrap the error of their transport.
        fault = fault.__cause__
    return False


def was_refused(fault: BaseException) -> bool:
    """Tell whether no tokens were spent: the provider answered with an error status, or was never reached."""
    if never_connected(fault):
        return True
    # These are ModelErrors, too, but the provider may have answered: what is held for the call counts as spent.
    unknown = (ModelTimeoutError, ModelConnectionError)
    return isinstance(fault, (*openai_errors("APIStatusError"), ModelError)) and not isinstance(fault, unknown)


def describe(fault: BaseException, address: str = "") -> str:
    """Describe a fault in one line, with the next step where there is one.

    Args:
        fault: What was raised.
        address: Where the model is served, if that is known.
    """
    status = status_of(fault)
    if isinstance(fault.__cause__, TooLarge):  # which OpenAI's client calls a connection error
        fault = fault.__cause__
    text = " ".join(str(fault).split()) or type(fault).__name__
    # "KeyError: choices" says more than "choices".
    if type(fault) in _NAMED and type(fault).__name__ not in text:
        text = f"{type(fault).__name__}: {text}"
    text = f"HTTP {status}: {text}" if status and str(status) not in text else text
    if never_connected(fault):
        text = f"no connection to {address or 'its server'}: is it running, and is the address right? ({text})"
    elif status == 404 and address:
        text = f"{text} (at {address}: is the model's name right, and is it there?)"
    elif isinstance(fault, openai_errors("APIConnectionError")) and address:
        text = f"{text} ({address})"
    # Some providers repeat the key in their refusal, or send a whole page of HTML.
    return redacted(text)[:400]


def _wait(state: RetryCallState) -> float:
    fault = state.outcome.exception() if state.outcome else None
    requested = _retry_after(fault)
    return min(requested, LONGEST_WAIT) if requested is not None else WAIT(state)


def _retry_after(fault: BaseException | None) -> float | None:
    """Return the seconds that the provider asks to wait, in either form the header may have."""
    header = getattr(getattr(fault, "response", None), "headers", {}).get("retry-after")
    if header is None:
        return None
    try:
        return max(float(header), 0.0)
    except ValueError:
        pass
    try:
        return max((parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
