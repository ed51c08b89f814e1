"""Sending one request: held against the limits, timed, retried where that may help, and paid."""

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Protocol

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.constants import TAG_NOSTREAM

from reflective_agents import telemetry
from reflective_agents.models.bills import Reservation
from reflective_agents.models.capabilities import (
    ModelCapabilities,
    address_of,
    capabilities_of,
    name_of,
    speaks_openai,
)
from reflective_agents.models.context_window import learn_count
from reflective_agents.models.costs import count_thoughts, estimate_tokens, longest_answer, settle
from reflective_agents.models.event_loops import without_streaming
from reflective_agents.models.faults import (
    CutOff,
    EmptyReply,
    OnlyThought,
    describe,
    is_of_users_code,
    is_refusal,
    model_faults,
    retrying,
    status_of,
    was_refused,
)
from reflective_agents.models.joining import as_reply, is_empty, joined
from reflective_agents.models.meter import Meter
from reflective_agents.models.prices import rates_of
from reflective_agents.models.refusals import is_too_long
from reflective_agents.models.reply_size import LONGEST_THOUGHT, LONGEST_TOKEN, Remaining, shortened
from reflective_agents.models.thoughts import with_thought_apart, without_thought
from reflective_agents.state.context import Thinking
from reflective_agents.state.errors import ModelFailed, Refused, TooLong
from reflective_agents.state.json_types import JsonObject

TOO_LARGE = 413
"""The HTTP status of a request that is too long, whatever its text."""
MANY = 1_000
"""Pieces of a stream, of which more would hold the event loop for long while they are joined."""


class Listener(Protocol):
    """Somebody who listens to a reply while it comes."""

    @property
    def is_subscribed(self) -> bool:
        """Whether anything is to be heard at all; else the reply need not come in pieces."""
        ...

    async def on_token(self, text: str) -> None:
        """Take the next piece."""

    async def retract(self) -> bool:
        """Forget all pieces: the request has failed. Tell whether any was passed on."""
        ...


async def send_with_retries(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    listener: Listener | None,
    options: JsonObject,
) -> list[AIMessage]:
    """Send a request up to three times. After a reply that was all thought the model gets more tokens for its answer,
    and is asked to think less.

    Args:
        base: The model.
        messages: The prompt.
        meter: The limits of the run.
        listener: Who follows the reply while it comes; None if nobody does.
        options: The options of the call.

    Returns:
        The replies with a text or tool calls. Only the first carries the request's usage.

    Raises:
        LimitReached: if the next attempt would exceed a limit.
        ModelFailed: if no attempt gave a reply.
        Exception: what a model of the user's own raises, as it is.
    """
    replies: list[AIMessage] = []
    was_thought = False
    try:
        async for attempt in retrying(meter):
            with attempt:
                number = attempt.retry_state.attempt_number
                sent = _with_more_tokens(base, options, number) if was_thought else options
                try:
                    replies = await _send(base, messages, meter, listener, sent)
                except OnlyThought:
                    was_thought = True
                    raise
    except OnlyThought as thought:
        most = options.get("max_tokens") or getattr(base, "max_tokens", None) or meter.max_answer_tokens
        raise ModelFailed(
            f"{name_of(base)} thought for all of its {most} tokens and wrote no answer, also with more room: raise "
            "max_answer_tokens, or set thinking to off or low"
        ) from thought
    except model_faults() as fault:
        if is_of_users_code(fault):
            raise
        raise _failure(base, fault) from fault
    return replies


def _failure(base: BaseChatModel, fault: Exception) -> ModelFailed:
    """Describe what went wrong for good: a request that the server does not take may be put in another way."""
    text = f"{name_of(base)} failed: {describe(fault, address_of(base))}"
    if not is_refusal(fault):
        return ModelFailed(text)
    if isinstance(fault, ContextOverflowError) or is_too_long(str(fault)) or status_of(fault) == TOO_LARGE:
        return TooLong(text)
    return Refused(text)


def _with_more_tokens(base: BaseChatModel, options: JsonObject, attempt: int) -> JsonObject:
    """Return the options of an attempt after one that was all thought: up to four times the tokens, less thinking."""
    most = int(options.get("max_tokens") or getattr(base, "max_tokens", None) or 0)
    more = {"max_tokens": most * 2 ** (attempt - 1)} if most else {}
    return merged({**options, **more}, thinking_options(capabilities_of(base), "low" if attempt == 2 else "off"))


def thinking_options(capabilities: ModelCapabilities, thinking: Thinking | None) -> JsonObject:
    """Return the parameters that make a server let its model think as much as is set."""
    options: JsonObject = {}
    if thinking and "reasoning_effort" in capabilities.switches:
        # vLLM, Ollama and OpenAI read this; the templates of Qwen and others the switch below.
        options["reasoning_effort"] = "none" if thinking == "off" else thinking
    if thinking and "chat_template_kwargs" in capabilities.switches:
        options["extra_body"] = {"chat_template_kwargs": {"enable_thinking": thinking != "off"}}
    return options


def merged(options: JsonObject, more: JsonObject) -> JsonObject:
    """Merge options with further ones; the bodies of both are sent."""
    all_options = {**options, **more}
    both = {**options.get("extra_body", {}), **more.get("extra_body", {})}
    return {**all_options, "extra_body": both} if both else all_options


async def _send(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    listener: Listener | None,
    options: JsonObject,
) -> list[AIMessage]:
    """Send a request once: what it may cost is held before, and what it has cost is settled after."""
    options = _with_model_options(base, meter, options)
    longest = int(options.get("max_tokens") or longest_answer(base, meter))
    guess = estimate_tokens(messages, options)
    most = options.get("n", 1) * longest
    prices = partial(rates_of, base, meter.prices)
    rates = prices(guess)
    async with (
        meter.reserve(guess + most, rates and rates.cost(guess, most)) as reservation,
        _retracting(listener),
    ):
        async with within_time(meter, reservation, _trace(base, messages, options)) as call:
            if listener:
                replies = [await _streamed(base, messages, listener, options, longest)]
            else:
                # LangGraph's stream mode "messages" would turn the call into a stream, and n replies into one.
                quiet = without_streaming(base)
                whole = _messages(await quiet.agenerate([list(messages)], **_hidden_config(), **options))
                wanted = whole[: options.get("n", 1)]
                replies = [shortened(reply, LONGEST_TOKEN * longest + LONGEST_THOUGHT) for reply in wanted]
            # A thought in tags stands in the text, of which it must take nothing away.
            replies = [shortened(without_thought(reply), LONGEST_TOKEN * longest) for reply in replies]
            call.note(answers=len(replies), **_tokens(replies))
        # Before anything is said of the replies: an empty one has cost as much.
        settle(reservation, replies, guess, prices)
        learn_count(base, replies, messages, guess, meter)
        meter.longest_answer = max(meter.longest_answer, math.ceil(reservation.output_tokens / max(len(replies), 1)))
        count_thoughts(name_of(base), replies, meter)
        answers = _answers_among(replies, meter)
    if options.get("n", 1) > 1:
        _notice_ignored_n(base, len(replies), meter)
    for extra in answers[1:]:
        # LangChain gives each of n replies the usage of all, which would be counted n times.
        extra.usage_metadata = None
    return answers


def _notice_ignored_n(base: BaseChatModel, count: int, meter: Meter) -> None:
    """Learn that a server ignores `n`: it gives one reply, twice in a row. One that gives some has left out others."""
    capabilities = capabilities_of(base)
    if count > 1:
        capabilities.shortfalls["n"] = 0
    elif capabilities.fell_short("n"):
        capabilities.give_up("n")
        meter.tell("learned", model=name_of(base), ignored="n")


def _with_model_options(base: BaseChatModel, meter: Meter, options: JsonObject) -> JsonObject:
    """Add to the options what the model itself has, or lacks."""
    if "extra_body" in options:
        # An option replaces the model's own field of this name, with what the user has set there.
        options = {**options, "extra_body": {**(getattr(base, "extra_body", None) or {}), **options["extra_body"]}}
    if "max_tokens" in type(base).model_fields and base.max_tokens is None:  # type: ignore[attr-defined]
        # Without a limit of its own the answer could exceed what is held for it.
        options = {"max_tokens": meter.max_answer_tokens, **options}
    return options


@asynccontextmanager
async def within_time(
    meter: Meter, reservation: Reservation, operation: telemetry.Operation
) -> AsyncIterator[telemetry.Operation]:
    """Give a request, sent by the body, the time of a call and of the run. What fails is counted, and free if it was
    refused.

    Raises:
        LimitReached: if the time of the run is up.
        TimeoutError: if that of the call is.
    """
    now = asyncio.get_running_loop().time()
    try:
        with operation as call:
            async with asyncio.timeout_at(min(now + meter.call_timeout, meter.deadline)):
                yield call
    except model_faults() as fault:
        meter.count(failed_calls=1)
        if was_refused(fault):
            reservation.settle(0, 0)
        # Which of the two times was up? `check` raises if it was the run's.
        if isinstance(fault, TimeoutError):
            meter.check()
            raise TimeoutError(f"no answer within {meter.call_timeout:g} s") from fault
        raise


@asynccontextmanager
async def _retracting(listener: Listener | None) -> AsyncIterator[None]:
    """Let a listener forget what it has heard of a request that fails."""
    try:
        yield
    except BaseException:  # also a cancellation: what was heard is no answer
        if listener:
            await listener.retract()
        raise


def _answers_among(replies: Sequence[AIMessage], meter: Meter) -> list[AIMessage]:
    """Return the replies with a text or tool calls; a call without any has failed."""
    answers = [reply for reply in replies if reply.text.strip() or reply.tool_calls or reply.invalid_tool_calls]
    if not answers:
        meter.count(failed_calls=1)
        if any(_finish(reply) == "length" for reply in replies):
            raise OnlyThought("the reply was cut off within its thought")
        raise EmptyReply("the reply has neither text nor a tool call")
    return answers


def _finish(reply: AIMessage) -> str:
    return str(reply.response_metadata.get("finish_reason") or "")


def _messages(result: LLMResult) -> list[AIMessage]:
    """Return the messages of a result, each with its own reason to end."""
    generations = [each for each in result.generations[0] if isinstance(each, ChatGeneration)]
    for each in generations:
        each.message.response_metadata.setdefault("finish_reason", (each.generation_info or {}).get("finish_reason"))
    return [as_reply(each.message) for each in generations]


def _hidden_config() -> RunnableConfig:
    """Return what a model is called with: the callbacks of the node, and a tag that hides the call from its streams."""
    config = ensure_config()
    return RunnableConfig(
        tags=[*(config.get("tags") or []), TAG_NOSTREAM],
        callbacks=config.get("callbacks"),
        metadata=config.get("metadata") or {},
    )


async def _streamed(
    base: BaseChatModel, messages: Sequence[BaseMessage], listener: Listener, options: JsonObject, longest: int
) -> AIMessage:
    """Send a request whose reply comes in pieces, and hand them on, up to the `longest` tokens that it may have."""
    chunks: list[AIMessageChunk] = []
    remaining = Remaining(longest)
    pieces = base.astream(list(messages), {"tags": _hidden_config().get("tags") or []}, **options)
    async with aclosing(pieces):  # type: ignore[type-var]
        async for piece in pieces:
            chunk = remaining.take(with_thought_apart(as_reply(piece)))
            await listener.on_token(chunk.text)
            if not isinstance(chunk, AIMessageChunk):  # a model that does not stream
                return chunk
            if not (chunks and is_empty(chunk)):
                chunks.append(chunk)
            _check_cancelled()
            if remaining.is_used:
                chunks.append(AIMessageChunk(content="", response_metadata={"finish_reason": "length"}))
                break
    reply = await asyncio.to_thread(joined, chunks) if len(chunks) > MANY else joined(chunks)  # not on the loop
    # The protocol demands a reason, so a stream without one was broken off, however well its text ends.
    if speaks_openai(base) and not _finish(reply):
        raise CutOff("the stream ended before the reply did: it gave no reason to finish")
    return reply


def _check_cancelled() -> None:
    """Raise the cancellation that was requested and lost: `asyncio.wait_for`, in which clients wait for each piece,
    drops one that comes together with the piece, in Python 3.11."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _trace(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject) -> telemetry.Operation:
    provider = base._llm_type.removesuffix("-chat").removeprefix("chat-")
    return telemetry.model_call(name_of(base), provider=provider, n=options.get("n", 1), messages=len(messages))


def _tokens(replies: Sequence[AIMessage]) -> dict[str, int | None]:
    used = replies[0].usage_metadata if replies else None
    if used is None:
        return {"input_tokens": None, "output_tokens": None}
    return {"input_tokens": used["input_tokens"], "output_tokens": used["output_tokens"]}
