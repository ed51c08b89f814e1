"""Functions of the user's own as verifiers: whatever they do, the run goes on."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import Any

from langgraph.errors import GraphBubbleUp

from reflective_agents.nodes.step import Step
from reflective_agents.nodes.verifiers.finding import Case, Finding, NoVerdict, bounded, passes
from reflective_agents.state.context import Context
from reflective_agents.state.secrets import redacted
from reflective_agents.state.verifier_forms import Function, arguments


async def verify(_: Step[Context], verifier: Function, case: Case) -> Finding:
    """Ask a function. One that does not await runs in a thread, so that others need not wait for it.

    Raises:
        NoVerdict: if it raises, or returns what is no verdict.
    """
    function = verifier.function
    given = [*case][: arguments(function)]
    try:
        reply: object = function(*given) if _awaits(function) else await in_thread(lambda: function(*given))
        if inspect.isawaitable(reply):
            reply = await reply
        return read_reply(reply)
    except (GraphBubbleUp, NoVerdict):  # the former is how `interrupt()` pauses a run
        raise
    except (Exception, SystemExit) as error:  # the code is the user's, and may raise anything
        raise NoVerdict(f"it raises {type(error).__name__}: {redacted(str(error)[:300])}") from error


def _awaits(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def in_thread(function: Callable[[], Any]) -> Awaitable[Any]:
    """Call a function in a thread that nobody waits for at the end of the process: it may hang for ever."""
    loop = asyncio.get_running_loop()
    context = copy_context()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except BaseException as raised:  # noqa: BLE001 - it is raised where the function is awaited
            is_usual = isinstance(raised, Exception) and not isinstance(raised, StopIteration)
            error = raised if is_usual else RuntimeError(type(raised).__name__)  # SystemExit would end the process
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, result, error)

    Thread(target=run, name="verifier", daemon=True).start()
    return future


def read_reply(reply: object) -> Finding:
    """Read what a function has returned: a bool, a score, feedback, nothing, or a score with feedback.

    Raises:
        NoVerdict: if it is something else, or a score is not from 0 to 1.
    """
    if reply is None or isinstance(reply, str):
        return passes(reply or "")
    if not isinstance(reply, Mapping):
        return Finding(_score(reply))
    feedback = reply.get("feedback") or ""
    if not isinstance(feedback, str):
        raise NoVerdict(f"its feedback is {type(feedback).__name__}, not a text")
    return Finding(_score(reply.get("score")), bounded(feedback))


def _score(value: Any) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise NoVerdict(f"it returns {type(value).__name__}, not a bool, a score, a text or None") from error
    if not 0 <= score <= 1:
        raise NoVerdict(f"it returns {score}, which is no score from 0 to 1")
    return score
