"""What can go wrong with a provider: which faults there are, which are worth a retry, and how long to wait for it."""

import asyncio
import sys
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from typing import TYPE_CHECKING, cast

import httpx
import httpx2
from langchain_core.exceptions import ModelConnectionError, ModelError, ModelTimeoutError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_random_exponential
from tenacity.wait import wait_base

from models.meter import Meter
from state.errors import LimitReached

if TYPE_CHECKING:
    from openai import APIStatusError

ATTEMPTS = 3
LONGEST_WAIT = 60.0
WAIT: wait_base = wait_random_exponential(multiplier=0.5, max=8)
"""How long to wait before the next attempt, where the provider does not say."""

_FAULTS = (ModelError, httpx.HTTPError, httpx2.HTTPError, OSError, TimeoutError, ValueError, TypeError, LookupError)


class EmptyReply(ValueError):
    """Raised when a provider answers with neither text nor tool calls."""


def model_faults() -> tuple[type[Exception], ...]:
    """What a client raises when a provider fails or sends something malformed; never an interrupt or a cancellation."""
    return (*_FAULTS, *openai_errors("OpenAIError"))


def refusals() -> tuple[type[Exception], ...]:
    """What making a client raises when its settings will not do."""
    return (ValueError, *openai_errors("OpenAIError"))


def openai_errors(*names: str) -> tuple[type[Exception], ...]:
    """Errors of OpenAI's client, by name; none where it was never loaded, and so cannot have raised any."""
    if "openai" not in sys.modules:
        return ()
    client = import_module("openai")  # waits until it is whole, where another thread is loading it
    return tuple(getattr(client, name) for name in names)


def retrying(meter: Meter) -> AsyncRetrying:
    """A retry policy: up to three attempts, waiting as long as the provider asks, and never past the run's deadline."""

    async def sleep(seconds: float) -> None:
        if asyncio.get_running_loop().time() + seconds >= meter.deadline:
            raise LimitReached(
                f"max_seconds={meter.max_seconds:g} would be exceeded: the provider asks to wait {seconds:.0f} s"
            )
        await asyncio.sleep(seconds)

    return AsyncRetrying(
        stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception(is_transient), wait=_wait, sleep=sleep, reraise=True
    )


def is_transient(fault: BaseException) -> bool:
    """Whether the same request may succeed when it is sent again."""
    if isinstance(fault, ModelError):
        return bool(fault.is_retryable)
    if isinstance(fault, openai_errors("APIStatusError")):
        status = cast("APIStatusError", fault).status_code
        return status in (408, 409, 429) or status >= 500
    malformed = (*openai_errors("APIConnectionError", "APIResponseValidationError"), EmptyReply, TimeoutError, OSError)
    return isinstance(
        fault, (*malformed, httpx.TransportError, httpx2.TransportError, ValueError, TypeError, LookupError)
    )


def was_refused(fault: BaseException) -> bool:
    """Whether the provider answered with an error status, so that no tokens were spent."""
    unknown = (ModelTimeoutError, ModelConnectionError)
    return isinstance(fault, (*openai_errors("APIStatusError"), ModelError)) and not isinstance(fault, unknown)


def describe(fault: BaseException) -> str:
    """A fault in one line."""
    status = getattr(fault, "status_code", None)
    text = " ".join(str(fault).split()) or type(fault).__name__
    return f"HTTP {status}: {text}"[:300] if status and str(status) not in text else text[:300]


def _wait(state: RetryCallState) -> float:
    fault = state.outcome.exception() if state.outcome else None
    asked = _retry_after(fault)
    return min(asked, LONGEST_WAIT) if asked is not None else WAIT(state)


def _retry_after(fault: BaseException | None) -> float | None:
    """Seconds that the provider asks to wait, in either form the header may have."""
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
