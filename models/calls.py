"""Sending requests to models: metered, timed, retried where that may help, with `n` where the provider has it."""

import asyncio
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import Runnable, RunnableBinding, ensure_config
from langgraph.constants import TAG_NOSTREAM

import telemetry
from models.faults import EmptyReply, describe, model_faults, retrying, was_refused
from models.meter import Meter
from models.providers import describe_model, without_streaming
from state.errors import ModelFailed, UnknownModel

ChatModel = Runnable[Any, AIMessage]
"""A chat model, with or without tools bound to it."""


async def request(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    *,
    n: int = 1,
    stream: bool = False,
    **options: Any,
) -> list[AIMessage]:
    """Ask a model, with up to three attempts if the provider is busy or fails; every attempt is a call that counts.

    Args:
        model: The model, with its tools bound.
        messages: The prompt.
        meter: The limits of the run.
        n: Candidates asked for in this one request; more than 1 only where `takes_n(model)`.
        stream: Whether the tokens go to the `messages` stream.
        options: Further options of the call, such as `seed`.

    Returns:
        One message a candidate; a provider may return fewer than n. Only the first carries the request's usage.

    Raises:
        LimitReached: if the next attempt would exceed a limit.
        ModelFailed: if no attempt gave a reply.
    """
    if n > 1:
        options["n"] = n
    try:
        return await retrying(meter)(_attempt, model, messages, meter, stream, options)
    except model_faults() as fault:
        raise ModelFailed(f"{_name(model)} failed: {describe(fault)}") from fault


async def _attempt(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    stream: bool,
    options: dict[str, Any],
) -> list[AIMessage]:
    base, bound = _unbind(model)
    options = {**bound, **options}
    if "max_tokens" in type(base).model_fields and base.max_tokens is None:  # type: ignore[attr-defined]
        options.setdefault("max_tokens", meter.max_answer_tokens)
    most = options.get("n", 1) * _longest_answer(base, meter)
    async with meter.reserve(estimate_tokens(messages, options) + most) as reservation:
        now = asyncio.get_running_loop().time()
        try:
            with _told(base, messages, options) as call:
                async with asyncio.timeout_at(min(now + meter.call_timeout, meter.deadline)):
                    replies = await _send(base, messages, stream, options)
                call.note(answers=len(replies), **_tokens(replies))
        except model_faults() as fault:
            meter.count(failed_calls=1)
            if was_refused(fault):
                reservation.settle(0, 0)
            if isinstance(fault, TimeoutError):
                meter.check()
                raise TimeoutError(f"no answer within {meter.call_timeout:g} s") from fault
            raise
        used = replies[0].usage_metadata
        if used is None:
            reservation.settle(estimate_tokens(messages, options), estimate_tokens(replies, {}))
        else:
            reservation.settle(used["input_tokens"], used["output_tokens"])
    for extra in replies[1:]:
        extra.usage_metadata = None
    return replies


async def _send(
    base: BaseChatModel, messages: Sequence[BaseMessage], stream: bool, options: dict[str, Any]
) -> list[AIMessage]:
    config = ensure_config()
    if not stream:
        base = without_streaming(base)
    tags = [*(config.get("tags") or []), *([] if stream else [TAG_NOSTREAM])]
    result = await base.agenerate(
        [list(messages)], callbacks=config.get("callbacks"), tags=tags, metadata=config.get("metadata"), **options
    )
    replies = [generation.message for generation in result.generations[0] if isinstance(generation, ChatGeneration)]
    answers = [reply for reply in replies if isinstance(reply, AIMessage) and (reply.text.strip() or _calls(reply))]
    if not answers:
        raise EmptyReply("the reply has neither text nor a tool call")
    return answers


def _calls(reply: AIMessage) -> Sequence[Any]:
    return [*reply.tool_calls, *reply.invalid_tool_calls]


def _told(base: BaseChatModel, messages: Sequence[BaseMessage], options: dict[str, Any]) -> telemetry.Operation:
    provider = base._llm_type.removesuffix("-chat").removeprefix("chat-")
    return telemetry.model_call(_name(base), provider=provider, n=options.get("n", 1), messages=len(messages))


def _tokens(replies: Sequence[AIMessage]) -> dict[str, int | None]:
    used = replies[0].usage_metadata
    return {name: used[name] if used else None for name in ("input_tokens", "output_tokens")}


def takes_n(model: ChatModel) -> bool:
    """Whether one request may ask for several candidates."""
    base, _ = _unbind(model)
    return "n" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True


def takes_seed(model: ChatModel) -> bool:
    """Whether a request may carry a seed."""
    base, _ = _unbind(model)
    return "seed" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True


def takes_logprobs(model: ChatModel) -> bool:
    """Whether a request may ask for the log-probabilities of the reply; OpenAI's reasoning models refuse that."""
    base, _ = _unbind(model)
    known = "logprobs" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True
    return known and takes_stop(model)


def takes_stop(model: ChatModel) -> bool:
    """Whether a request may name texts before which the reply ends; OpenAI's reasoning models refuse that."""
    base, _ = _unbind(model)
    return not (base._llm_type == "openai-chat" and re.match(r"o\d|gpt-5", _name(base)))


def _unbind(model: ChatModel) -> tuple[BaseChatModel, dict[str, Any]]:
    if isinstance(model, RunnableBinding):
        base, inner = _unbind(model.bound)
        return base, {**inner, **model.kwargs}
    if not isinstance(model, BaseChatModel):
        raise UnknownModel(f"a chat model is needed, not {type(model).__name__}")
    return model, {}


def _name(model: ChatModel) -> str:
    base, _ = _unbind(model)
    return describe_model(base)["model_name"]


def _longest_answer(base: BaseChatModel, meter: Meter) -> int:
    return int(getattr(base, "max_tokens", None) or meter.max_answer_tokens)


def estimate_tokens(messages: Sequence[BaseMessage], options: dict[str, Any]) -> int:
    """An upper estimate of a prompt's tokens without the provider's tokenizer: one for every two bytes, ten a
    message."""
    text = "".join(str(message.content) + json.dumps(getattr(message, "tool_calls", [])) for message in messages)
    tools = json.dumps(options["tools"]) if options.get("tools") else ""
    return math.ceil((len(text.encode()) + len(tools.encode())) / 2) + 10 * len(messages)
