"""Sending requests to models: metered, timed, retried where that may help, with `n` where the provider has it."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.abilities import ChatModel, name_of, unbind
from reflective_agents.models.cache import remembered
from reflective_agents.models.costs import estimate_tokens, longest_answer
from reflective_agents.models.faults import (
    OnlyThought,
    describe,
    is_refusal,
    model_faults,
    retrying,
)
from reflective_agents.models.images import about_images, with_images
from reflective_agents.models.language import in_language
from reflective_agents.models.meter import Meter
from reflective_agents.models.sending import Listener, send_once
from reflective_agents.models.toolless import in_words, with_written_calls
from reflective_agents.models.turns import within_turns
from reflective_agents.models.ways import Ways, address_of, is_forced, is_too_long, learn, learn_context, ways_of
from reflective_agents.offline import OfflineChatModel
from reflective_agents.state.context import Thinking
from reflective_agents.state.errors import LimitReached, ModelFailed, Refused, TooLong
from reflective_agents.state.json_types import JsonObject


async def request(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    *,
    n: int = 1,
    voice: Listener | None = None,
    judging: bool = False,
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
        options: Further options of the call, such as `seed`.

    Returns:
        One message a candidate; a provider may return fewer than n. Only the first carries the request's usage.

    Raises:
        LimitReached: if the next attempt would exceed a limit.
        ModelFailed: if no attempt gave a reply; it is `Refused` if the server does not take the request as it is, and
            `TooLong` if the prompt does not fit into the model's context.
    """
    base, bound = unbind(model)
    if isinstance(base, OfflineChatModel):
        options["request"] = meter.question
    options = _merged(meter.parameters(judging), {**bound, **options})
    prompt = within_turns(with_images(in_language(messages, meter.language, meter.question), meter.asked))
    if n > 1 and not ways_of(base).n:
        return await _one_by_one(base, prompt, meter, n, options)
    try:
        listener = voice if voice and voice.heard and n == 1 else None
        return await _as_it_can(base, prompt, meter, {**options, "n": n} if n > 1 else options, listener)
    except Refused:
        if n > 1 and not ways_of(base).n:
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
        *(_as_it_can(base, messages, meter, seeded(options, place)) for place in range(n)), return_exceptions=True
    )
    for failure in drawn:
        if isinstance(failure, BaseException) and not isinstance(failure, LimitReached | ModelFailed):
            raise failure
    replies = [reply for batch in drawn if not isinstance(batch, BaseException) for reply in batch]
    if not replies:
        raise next(failure for failure in drawn if isinstance(failure, BaseException))
    return replies


async def _as_it_can(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    options: JsonObject,
    voice: Listener | None = None,
) -> list[AIMessage]:
    """Send a request in the way that the model can answer; what a refusal teaches is remembered.

    Raises:
        Refused: if the server refuses it in every way there is; also if it refuses n, which the caller has to mend.
    """
    ways = ways_of(base)
    lessons = 0
    while True:
        tools = options.get("tools") or []
        forced = is_forced(options.get("tool_choice"))
        in_text = not ways.tools and bool(tools) and not forced
        may_call = in_text and options.get("tool_choice") != "none"
        left_out = [*(("tools", "tool_choice") if in_text else ()), *(() if ways.logprobs else ("logprobs",))]
        sent = {name: value for name, value in options.items() if name not in left_out}
        sent = _within_context(base, _merged(sent, _switched(ways, meter.thinking)), ways)
        said = in_words(messages, tools if may_call else []) if in_text else messages
        sent = _within_budget(base, said, sent, meter)
        try:
            listener = None if may_call else voice
            ask = partial(_retried, base, said, meter, listener, sent)
            replies = await remembered(base, said, sent, ask, listener.hear if listener else None)
        except TooLong as error:
            known = ways.context_tokens
            learn_context(ways, str(error), name_of(base), meter.tell)
            if ways.context_tokens == known or lessons or _within_context(base, sent, ways) == sent:
                raise
        except Refused as error:
            if about_images(said, str(error)):
                ways.images = False
                meter.tell("learned", model=name_of(base), refused="images")
                raise ModelFailed(f"{name_of(base)} takes no images: choose a model that does ({error})") from error
            if (
                lessons > 3
                or not learn(ways, str(error), sent, name_of(base), meter.tell)
                or (not ways.n and "n" in sent)
            ):
                raise
        else:
            shown = tools if options.get("tool_choice") != "none" and not forced else []
            return [with_written_calls(reply, shown, labelled=in_text) for reply in replies]
        lessons += 1


def _within_context(base: BaseChatModel, options: JsonObject, ways: Ways) -> JsonObject:
    """Limit the room for the answer to a quarter of the context, where the context is known."""
    most = int(options.get("max_tokens") or getattr(base, "max_tokens", None) or 0)
    if ways.context_tokens and most > ways.context_tokens // 4:
        return {**options, "max_tokens": max(ways.context_tokens // 4, 16)}
    return options


def _within_budget(
    base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject, meter: Meter
) -> JsonObject:
    """Limit the room for the answer to what the tokens that are left hold, where less than the most will do."""
    if meter.least_room is None or "max_tokens" not in type(base).model_fields:
        return options
    most = int(options.get("max_tokens") or longest_answer(base, meter))
    room = meter.room(estimate_tokens(messages, options), most, options.get("n", 1))
    return {**options, "max_tokens": room} if room < most else options


def _switched(ways: Ways, thinking: Thinking | None) -> JsonObject:
    """Return the parameters that make a server let its model think as much as is set."""
    options: JsonObject = {}
    if thinking and "reasoning_effort" in ways.switches:
        options["reasoning_effort"] = "none" if thinking == "off" else thinking
    if thinking and "chat_template_kwargs" in ways.switches:
        options["extra_body"] = {"chat_template_kwargs": {"enable_thinking": thinking != "off"}}
    return options


async def _retried(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    voice: Listener | None,
    options: JsonObject,
) -> list[AIMessage]:
    """Send a request up to three times. One that was all thought gets more room, and is told to think less."""
    attempts = 0

    async def attempt() -> list[AIMessage]:
        nonlocal attempts
        attempts += 1
        try:
            return await send_once(base, messages, meter, voice, _roomier(base, options, attempts) if cut else options)
        except BaseException:
            if voice:
                await voice.withdraw()
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
    room = {"max_tokens": most * 2 ** (attempt - 1)} if most else {}
    return _merged({**options, **room}, _switched(ways_of(base), "low" if attempt == 2 else "off"))


def _merged(options: JsonObject, more: JsonObject) -> JsonObject:
    """Merge options with further ones; the bodies of both are sent."""
    both = {**options.get("extra_body", {}), **more.get("extra_body", {})}
    return {**options, **more, **({"extra_body": both} if both else {})}
