"""One attempt of a call: it is held against the limits, timed, sent, listened to, and paid."""

import asyncio
import math
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import RunnableConfig, ensure_config
from langgraph.constants import TAG_NOSTREAM

from reflective_agents import telemetry
from reflective_agents.models.capabilities import capabilities_of, name_of
from reflective_agents.models.costs import count_thoughts, estimate_tokens, longest_answer, settle
from reflective_agents.models.faults import (
    EmptyReply,
    OnlyThought,
    model_faults,
    was_refused,
)
from reflective_agents.models.meter import Meter, Reservation
from reflective_agents.models.prices import rates_of
from reflective_agents.models.providers import without_streaming
from reflective_agents.models.thoughts import without_thought
from reflective_agents.models.usage import last_reported
from reflective_agents.state.json_types import JsonObject


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


async def send_once(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    listener: Listener | None,
    options: JsonObject,
) -> list[AIMessage]:
    """Send a request once: what it may cost is held before, and what it has cost is settled after.

    Args:
        base: The model.
        messages: The prompt.
        meter: The limits of the run.
        voice: Who listens while the reply comes; None if nobody does.
        options: The options of the call.

    Returns:
        The replies with a text or tool calls. Only the first carries the request's usage.

    Raises:
        LimitReached: if it would exceed a limit.
        OnlyThought: if the model was cut off before it came to its answer.
        EmptyReply: if it answered with nothing.
        Exception: what the client raises, one of `faults.model_faults()`.
    """
    options = _spelled_out(base, meter, options)
    longest = int(options.get("max_tokens") or longest_answer(base, meter))
    guess, most = estimate_tokens(messages, options), options.get("n", 1) * longest
    prices = partial(rates_of, base, meter.prices)
    rates = prices(guess)
    async with meter.reserve(guess + most, rates and rates.cost(guess, most)) as reservation:
        replies = await _in_time(base, messages, meter, listener, options, reservation)
        settle(reservation, replies, guess, prices)
        meter.longest_answer = max(meter.longest_answer, math.ceil(reservation.output_tokens / max(len(replies), 1)))
        count_thoughts(name_of(base), replies, meter)
        answers = _answers_among(replies, meter)
    if len(replies) < options.get("n", 1):
        capabilities_of(base).n = False
        meter.tell("learned", model=name_of(base), ignored="n")
    for extra in answers[1:]:
        extra.usage_metadata = None
    return answers


def _spelled_out(base: BaseChatModel, meter: Meter, options: JsonObject) -> JsonObject:
    """Add to the options what the model itself has, or lacks."""
    if "extra_body" in options:
        options = {**options, "extra_body": {**(getattr(base, "extra_body", None) or {}), **options["extra_body"]}}
    if "max_tokens" in type(base).model_fields and base.max_tokens is None:  # type: ignore[attr-defined]
        options = {"max_tokens": meter.max_answer_tokens, **options}
    return options


async def _in_time(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    listener: Listener | None,
    options: JsonObject,
    reservation: Reservation,
) -> list[AIMessage]:
    """Send a request, within the time of a call and of the run. What fails is counted, and free if it was refused."""
    now = asyncio.get_running_loop().time()
    try:
        with _told(base, messages, options) as call:
            async with asyncio.timeout_at(min(now + meter.call_timeout, meter.deadline)):
                replies = await _send(base, messages, listener, options)
            call.note(answers=len(replies), **_tokens(replies))
            return replies
    except model_faults() as fault:
        meter.count(failed_calls=1)
        if was_refused(fault):
            reservation.settle(0, 0)
        if isinstance(fault, TimeoutError):
            meter.check()
            raise TimeoutError(f"no answer within {meter.call_timeout:g} s") from fault
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


async def _send(
    base: BaseChatModel, messages: Sequence[BaseMessage], listener: Listener | None, options: JsonObject
) -> list[AIMessage]:
    config = ensure_config()
    hidden = [*(config.get("tags") or []), TAG_NOSTREAM]
    if listener:
        reply = await _listened(base, messages, listener, {"tags": hidden}, options)
        return [without_thought(reply)]
    result = await without_streaming(base).agenerate(
        [list(messages)], callbacks=config.get("callbacks"), tags=hidden, metadata=config.get("metadata"), **options
    )
    generations = [each for each in result.generations[0] if isinstance(each, ChatGeneration)]
    for each in generations:
        each.message.response_metadata.setdefault("finish_reason", (each.generation_info or {}).get("finish_reason"))
    replies = [each.message for each in generations]
    return [without_thought(reply) for reply in replies if isinstance(reply, AIMessage)]


async def _listened(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    listener: Listener,
    config: RunnableConfig,
    options: JsonObject,
) -> AIMessage:
    """Send a request whose reply comes in pieces, and let them be heard."""
    chunks: list[AIMessageChunk] = []
    async for chunk in base.astream(list(messages), config, **options):
        if not isinstance(chunk, AIMessageChunk):  # a model that does not stream
            await listener.on_token(chunk.text)
            return chunk
        chunks.append(chunk)
        await listener.on_token(chunk.text)
    reply = message_chunk_to_message(add_ai_message_chunks(*chunks))
    assert isinstance(reply, AIMessage)
    reply.usage_metadata = last_reported(chunks)
    return reply


def _told(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject) -> telemetry.Operation:
    provider = base._llm_type.removesuffix("-chat").removeprefix("chat-")
    return telemetry.model_call(name_of(base), provider=provider, n=options.get("n", 1), messages=len(messages))


def _tokens(replies: Sequence[AIMessage]) -> dict[str, int | None]:
    used = replies[0].usage_metadata if replies else None
    return {name: used[name] if used else None for name in ("input_tokens", "output_tokens")}
