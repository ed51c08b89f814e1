"""Sending requests to models: metered, timed, retried where that may help, with `n` where the provider has it."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.cache import remembered
from reflective_agents.models.capabilities import (
    ChatModel,
    ModelCapabilities,
    address_of,
    capabilities_of,
    is_forced,
    is_too_long,
    learn,
    learn_context_size,
    name_of,
    unbind,
)
from reflective_agents.models.costs import estimate_tokens, longest_answer
from reflective_agents.models.faults import (
    OnlyThought,
    describe,
    is_refusal,
    model_faults,
    retrying,
)
from reflective_agents.models.images import about_images, show_images
from reflective_agents.models.language import in_language
from reflective_agents.models.meter import Meter
from reflective_agents.models.sending import Listener, send_once
from reflective_agents.models.toolless import read_written_calls, tools_as_text
from reflective_agents.models.turns import escape_turn_signs
from reflective_agents.offline import OfflineChatModel
from reflective_agents.state.context import Thinking
from reflective_agents.state.errors import LimitReached, ModelFailed, Refused, TooLong
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.purpose import Purpose


async def request(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    *,
    n: int = 1,
    listener: Listener | None = None,
    judging: bool = False,
    purpose: Purpose | None = None,
    **options: Any,
) -> list[AIMessage]:
    """Ask a model, with up to three attempts if the provider is busy or fails; every attempt is a call that counts.

    Args:
        model: The model, with its tools bound.
        messages: The prompt.
        meter: The limits of the run.
        n: Candidates asked for: in this one request if the model can, else in requests at once.
        voice: Who listens while the reply comes.
        judging: Whether a judge or critic is asked, who may have a temperature of their own.
        purpose: What is asked for, as data for the offline model.
        options: Further options of the call, such as `seed`.

    Returns:
        One message a candidate; a provider may return fewer than n. Only the first carries the request's usage.

    Raises:
        LimitReached: if the next attempt would exceed a limit.
        ModelFailed: if no attempt gave a reply; it is `Refused` if the server does not take the request as it is, and
            `TooLong` if the prompt does not fit into the model's context.
    """
    base, bound = unbind(model)
    if purpose and isinstance(base, OfflineChatModel):
        options["purpose"] = purpose
    options = _merged(meter.parameters(judging), {**bound, **options})
    prompt = escape_turn_signs(show_images(in_language(messages, meter.language, meter.question), meter.asked))
    if n > 1 and not capabilities_of(base).n:
        return await _one_by_one(base, prompt, meter, n, options)
    try:
        listener = listener if listener and listener.is_subscribed and n == 1 else None
        return await _send_with_fallbacks(base, prompt, meter, {**options, "n": n} if n > 1 else options, listener)
    except Refused:
        if n > 1 and not capabilities_of(base).n:
            return await _one_by_one(base, prompt, meter, n, options)
        raise


def seeded(options: JsonObject, place: int) -> JsonObject:
    """Give the request for the sample at a place, from 0, a seed of its own if it has any: samples that are asked for
    one by one would all be alike else."""
    seed = options.get("seed")
    return options if seed is None else {**options, "seed": seed + place}


async def _one_by_one(
    base: BaseChatModel, messages: Sequence[BaseMessage], meter: Meter, n: int, options: JsonObject
) -> list[AIMessage]:
    """Request several candidates from a server that gives one per request; those that fail are missing."""
    drawn = await asyncio.gather(
        *(_send_with_fallbacks(base, messages, meter, seeded(options, place)) for place in range(n)),
        return_exceptions=True,
    )
    for failure in drawn:
        if isinstance(failure, BaseException) and not isinstance(failure, LimitReached | ModelFailed):
            raise failure
    replies = [reply for batch in drawn if not isinstance(batch, BaseException) for reply in batch]
    if not replies:
        raise next(failure for failure in drawn if isinstance(failure, BaseException))
    return replies


async def _send_with_fallbacks(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    options: JsonObject,
    listener: Listener | None = None,
) -> list[AIMessage]:
    """Send a request in the way that the model can answer; what a refusal teaches is remembered.

    Raises:
        Refused: if the server refuses it in every way there is; also if it refuses n, which the caller has to mend.
    """
    capabilities = capabilities_of(base)
    lessons = 0
    while True:
        tools = options.get("tools") or []
        forced = is_forced(options.get("tool_choice"))
        in_text = not capabilities.tools and bool(tools) and not forced
        may_call = in_text and options.get("tool_choice") != "none"
        left_out = [*(("tools", "tool_choice") if in_text else ()), *(() if capabilities.logprobs else ("logprobs",))]
        sent = {name: value for name, value in options.items() if name not in left_out}
        sent = _within_context_size(base, _merged(sent, _switched(capabilities, meter.thinking)), capabilities)
        said = tools_as_text(messages, tools if may_call else []) if in_text else messages
        sent = _within_budget(base, said, sent, meter)
        try:
            listener = None if may_call else listener
            ask = partial(_retried, base, said, meter, listener, sent)
            replies = await remembered(base, said, sent, ask, listener.on_token if listener else None)
        except TooLong as error:
            known = capabilities.context_tokens
            learn_context_size(capabilities, str(error), name_of(base), meter.tell)
            if (
                capabilities.context_tokens == known
                or lessons
                or _within_context_size(base, sent, capabilities) == sent
            ):
                raise
        except Refused as error:
            if about_images(said, str(error)):
                capabilities.images = False
                meter.tell("learned", model=name_of(base), refused="images")
                raise ModelFailed(f"{name_of(base)} takes no images: choose a model that does ({error})") from error
            if (
                lessons > 3
                or not learn(capabilities, str(error), sent, name_of(base), meter.tell)
                or (not capabilities.n and "n" in sent)
            ):
                raise
        else:
            shown = tools if options.get("tool_choice") != "none" and not forced else []
            return [read_written_calls(reply, shown, labelled=in_text) for reply in replies]
        lessons += 1


def _within_context_size(base: BaseChatModel, options: JsonObject, capabilities: ModelCapabilities) -> JsonObject:
    """Limit the room for the answer to a quarter of the context, where the context is known."""
    most = int(options.get("max_tokens") or getattr(base, "max_tokens", None) or 0)
    if capabilities.context_tokens and most > capabilities.context_tokens // 4:
        return {**options, "max_tokens": max(capabilities.context_tokens // 4, 16)}
    return options


def _within_budget(
    base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject, meter: Meter
) -> JsonObject:
    """Limit the room for the answer to what the tokens that are left hold, where less than the most will do."""
    if meter.least_answer_tokens is None or "max_tokens" not in type(base).model_fields:
        return options
    most = int(options.get("max_tokens") or longest_answer(base, meter))
    answer_budget = meter.answer_budget(estimate_tokens(messages, options), most, options.get("n", 1))
    return {**options, "max_tokens": answer_budget} if answer_budget < most else options


def _switched(capabilities: ModelCapabilities, thinking: Thinking | None) -> JsonObject:
    """Return the parameters that make a server let its model think as much as is set."""
    options: JsonObject = {}
    if thinking and "reasoning_effort" in capabilities.switches:
        options["reasoning_effort"] = "none" if thinking == "off" else thinking
    if thinking and "chat_template_kwargs" in capabilities.switches:
        options["extra_body"] = {"chat_template_kwargs": {"enable_thinking": thinking != "off"}}
    return options


async def _retried(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    listener: Listener | None,
    options: JsonObject,
) -> list[AIMessage]:
    """Send a request up to three times. One that was all thought gets more room, and is told to think less."""
    attempts = 0

    async def attempt() -> list[AIMessage]:
        nonlocal attempts
        attempts += 1
        try:
            return await send_once(
                base, messages, meter, listener, _roomier(base, options, attempts) if cut else options
            )
        except BaseException:
            if listener:
                await listener.retract()
            raise

    cut: list[OnlyThought] = []

    async def once() -> list[AIMessage]:
        try:
            return await attempt()
        except OnlyThought as thought:
            cut.append(thought)
            raise

    try:
        return await retrying(meter)(once)
    except OnlyThought as thought:
        most = options.get("max_tokens") or getattr(base, "max_tokens", None) or meter.max_answer_tokens
        raise ModelFailed(
            f"{name_of(base)} thought for all of its {most} tokens and wrote no answer, also with more room: raise "
            "max_answer_tokens, or set thinking to off or low"
        ) from thought
    except model_faults() as fault:
        text = describe(fault, address_of(base))
        if is_refusal(fault):
            kind = TooLong if is_too_long(str(fault)) else Refused
            hint = ": lower max_context_tokens or max_answer_tokens" if kind is TooLong else ""
            raise kind(f"{name_of(base)} failed: {text}{hint}") from fault
        raise ModelFailed(f"{name_of(base)} failed: {text}") from fault


def _roomier(base: BaseChatModel, options: JsonObject, attempt: int) -> JsonObject:
    """Return the options of the attempt after one that was all thought: up to four times the room, less thinking."""
    most = int(options.get("max_tokens") or getattr(base, "max_tokens", None) or 0)
    answer_budget = {"max_tokens": most * 2 ** (attempt - 1)} if most else {}
    return _merged({**options, **answer_budget}, _switched(capabilities_of(base), "low" if attempt == 2 else "off"))


def _merged(options: JsonObject, more: JsonObject) -> JsonObject:
    """Merge options with further ones; the bodies of both are sent."""
    both = {**options.get("extra_body", {}), **more.get("extra_body", {})}
    return {**options, **more, **({"extra_body": both} if both else {})}
