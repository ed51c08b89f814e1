"""Sending requests to models: metered, timed, retried where that may help, with `n` where the provider has it."""

import asyncio
import json
import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, ensure_config
from langgraph.constants import TAG_NOSTREAM

from reflective_agents import telemetry
from reflective_agents.models.cache import remembered
from reflective_agents.models.faults import (
    EmptyReply,
    OnlyThought,
    describe,
    is_refusal,
    model_faults,
    retrying,
    was_refused,
)
from reflective_agents.models.images import TOKENS as IMAGE_TOKENS
from reflective_agents.models.images import about_images, images_of, with_images
from reflective_agents.models.language import in_language
from reflective_agents.models.meter import Meter, Reservation
from reflective_agents.models.prices import Rates, rates_of
from reflective_agents.models.providers import describe_model, without_streaming
from reflective_agents.models.thoughts import thought_of, without_thought
from reflective_agents.models.toolless import in_words, with_written_calls
from reflective_agents.models.turns import within_turns
from reflective_agents.models.ways import Ways, address_of, is_forced, is_too_long, learn, learn_context, ways_of
from reflective_agents.offline import OfflineChatModel
from reflective_agents.state.context import Thinking
from reflective_agents.state.errors import LimitReached, ModelFailed, Refused, TooLong, UnknownModel
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.limits import NANO
from reflective_agents.state.purpose import Purpose

_ABSURD = 100
"""How many times what was reserved a server may report; more cannot be."""

ChatModel = Runnable[LanguageModelInput, AIMessage]
"""A chat model, with or without tools bound to it."""


class Listener(Protocol):
    """Somebody who listens to a reply while it comes."""

    @property
    def heard(self) -> bool:
        """Whether anything is to be heard at all; else the reply need not come in pieces."""
        ...

    async def hear(self, text: str) -> None:
        """Take the next piece."""

    async def withdraw(self) -> bool:
        """Forget all pieces: the request has failed. Tell whether any was passed on."""
        ...


async def request(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    *,
    n: int = 1,
    voice: Listener | None = None,
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
    base, bound = _unbind(model)
    if purpose and isinstance(base, OfflineChatModel):
        options["purpose"] = purpose
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


async def _one_by_one(
    base: BaseChatModel, messages: Sequence[BaseMessage], meter: Meter, n: int, options: JsonObject
) -> list[AIMessage]:
    """Request several candidates from a server that gives one per request; those that fail are missing."""
    drawn = await asyncio.gather(
        *(_as_it_can(base, messages, meter, options) for _ in range(n)), return_exceptions=True
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
            learn_context(ways, str(error), _name(base), meter.tell)
            if ways.context_tokens == known or lessons or _within_context(base, sent, ways) == sent:
                raise
        except Refused as error:
            if about_images(said, str(error)):
                ways.images = False
                meter.tell("learned", model=_name(base), refused="images")
                raise ModelFailed(f"{_name(base)} takes no images: choose a model that does ({error})") from error
            if (
                lessons > 3
                or not learn(ways, str(error), sent, _name(base), meter.tell)
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
    most = int(options.get("max_tokens") or _longest_answer(base, meter))
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
            return await _attempt(base, messages, meter, voice, _roomier(base, options, attempts) if cut else options)
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
            f"{_name(base)} thought for all of its {most} tokens and wrote no answer, also with more room: raise "
            "max_answer_tokens, or set thinking to off or low"
        ) from thought
    except model_faults() as fault:
        text = describe(fault, address_of(base))
        if is_refusal(fault):
            kind = TooLong if is_too_long(str(fault)) else Refused
            hint = ": lower max_context_tokens or max_answer_tokens" if kind is TooLong else ""
            raise kind(f"{_name(base)} failed: {text}{hint}") from fault
        raise ModelFailed(f"{_name(base)} failed: {text}") from fault


def _roomier(base: BaseChatModel, options: JsonObject, attempt: int) -> JsonObject:
    """Return the options of the attempt after one that was all thought: up to four times the room, less thinking."""
    most = int(options.get("max_tokens") or getattr(base, "max_tokens", None) or 0)
    room = {"max_tokens": most * 2 ** (attempt - 1)} if most else {}
    return _merged({**options, **room}, _switched(ways_of(base), "low" if attempt == 2 else "off"))


def _merged(options: JsonObject, more: JsonObject) -> JsonObject:
    """Merge options with further ones; the bodies of both are sent."""
    both = {**options.get("extra_body", {}), **more.get("extra_body", {})}
    return {**options, **more, **({"extra_body": both} if both else {})}


async def _attempt(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    voice: Listener | None,
    options: JsonObject,
) -> list[AIMessage]:
    if "extra_body" in options:
        options = {**options, "extra_body": {**(getattr(base, "extra_body", None) or {}), **options["extra_body"]}}
    if "max_tokens" in type(base).model_fields and base.max_tokens is None:  # type: ignore[attr-defined]
        options = {"max_tokens": meter.max_answer_tokens, **options}
    longest = int(options.get("max_tokens") or _longest_answer(base, meter))
    guess, most = estimate_tokens(messages, options), options.get("n", 1) * longest
    rates = rates_of(base, meter.prices, guess)
    async with meter.reserve(guess + most, rates and rates.cost(guess, most)) as reservation:
        now = asyncio.get_running_loop().time()
        try:
            with _told(base, messages, options) as call:
                async with asyncio.timeout_at(min(now + meter.call_timeout, meter.deadline)):
                    replies = await _send(base, messages, voice, options)
                call.note(answers=len(replies), **_tokens(replies))
        except model_faults() as fault:
            meter.count(failed_calls=1)
            if was_refused(fault):
                reservation.settle(0, 0)
            if isinstance(fault, TimeoutError):
                meter.check()
                raise TimeoutError(f"no answer within {meter.call_timeout:g} s") from fault
            raise
        settle(reservation, replies, guess, rates)
        meter.longest_answer = max(meter.longest_answer, math.ceil(reservation.output_tokens / max(len(replies), 1)))
        answers = [reply for reply in replies if reply.text.strip() or reply.tool_calls or reply.invalid_tool_calls]
        _count_thoughts(base, replies, meter)
        if not answers:
            meter.count(failed_calls=1)
            if any(_finish(reply) == "length" for reply in replies):
                raise OnlyThought("the reply was cut off within its thought")
            raise EmptyReply("the reply has neither text nor a tool call")
    if len(replies) < options.get("n", 1):
        ways_of(base).n = False
        meter.tell("learned", model=_name(base), ignored="n")
    for extra in answers[1:]:
        extra.usage_metadata = None
    return answers


def settle(reservation: Reservation, replies: Sequence[AIMessage], guess: int, rates: Rates | None) -> None:
    """Settle what is held for a call by what its replies say that it has cost, else by an estimate.

    Args:
        reservation: What is held.
        replies: What the call has brought.
        guess: The estimated length of its prompt.
        rates: The prices of the model; None if nobody knows them.
    """
    used = _cost(replies, guess, reservation.tokens)
    reservation.settle(*used, _paid(replies, rates, *used))


def _cost(replies: Sequence[AIMessage], guess: int, reserved: int) -> tuple[int, int]:
    """Return the input and output tokens that a server reports, or an estimate if it reports none or absurd ones."""
    used = replies[0].usage_metadata if replies else None
    reported = (used["input_tokens"], used["output_tokens"]) if used else (-1, -1)
    if min(reported) < 0 or sum(reported) > _ABSURD * reserved:
        return guess, estimate_tokens(replies, {})
    return reported


def _paid(replies: Sequence[AIMessage], rates: Rates | None, input_tokens: int, output_tokens: int) -> int:
    """Return the nano-dollars that a call has cost: what the provider says, or the price of its tokens."""
    said = replies[0].response_metadata.get("cost") if replies else None
    if isinstance(said, int | float) and 0 <= said < math.inf:
        return math.ceil(said * NANO)
    used = replies[0].usage_metadata if replies else None
    cached = used.get("input_token_details", {}).get("cache_read") if used else None
    return rates.cost(input_tokens, output_tokens, cached or 0) if rates else 0


def _count_thoughts(base: BaseChatModel, replies: Sequence[AIMessage], meter: Meter) -> None:
    thought = "\n".join(filter(None, (thought_of(reply) for reply in replies)))
    if not thought:
        return
    used = replies[0].usage_metadata
    tokens = used.get("output_token_details", {}).get("reasoning") if used else None
    tokens = tokens or math.ceil(len(thought.encode()) / 4)
    meter.count(thinking_tokens=tokens)
    meter.tell("thought", model=_name(base), tokens=tokens, text=thought)


def _finish(reply: AIMessage) -> str:
    return str(reply.response_metadata.get("finish_reason") or "")


async def _send(
    base: BaseChatModel, messages: Sequence[BaseMessage], voice: Listener | None, options: JsonObject
) -> list[AIMessage]:
    config = ensure_config()
    hidden = [*(config.get("tags") or []), TAG_NOSTREAM]
    if voice:
        reply = await _listened(base, messages, voice, {"tags": hidden}, options)
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
    voice: Listener,
    config: RunnableConfig,
    options: JsonObject,
) -> AIMessage:
    """Send a request whose reply comes in pieces, and let them be heard."""
    chunks: list[AIMessageChunk] = []
    async for chunk in base.astream(list(messages), config, **options):
        if not isinstance(chunk, AIMessageChunk):  # a model that does not stream
            await voice.hear(chunk.text)
            return chunk
        chunks.append(chunk)
        await voice.hear(chunk.text)
    reply = message_chunk_to_message(add_ai_message_chunks(*chunks))
    assert isinstance(reply, AIMessage)
    return reply


def _told(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject) -> telemetry.Operation:
    provider = base._llm_type.removesuffix("-chat").removeprefix("chat-")
    return telemetry.model_call(_name(base), provider=provider, n=options.get("n", 1), messages=len(messages))


def _tokens(replies: Sequence[AIMessage]) -> dict[str, int | None]:
    used = replies[0].usage_metadata if replies else None
    return {name: used[name] if used else None for name in ("input_tokens", "output_tokens")}


def takes_n(model: ChatModel) -> bool:
    """Tell whether one request may ask for several candidates."""
    base, _ = _unbind(model)
    known = "n" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True
    return known and ways_of(base).n


def takes_seed(model: ChatModel) -> bool:
    """Tell whether a request may carry a seed."""
    base, _ = _unbind(model)
    return "seed" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True


def takes_logprobs(model: ChatModel) -> bool:
    """Tell whether a request may ask for the reply's log-probabilities; OpenAI's reasoning models refuse that."""
    base, _ = _unbind(model)
    known = "logprobs" in type(base).model_fields and getattr(base, "use_responses_api", None) is not True
    return known and takes_stop(model) and ways_of(base).logprobs


def takes_stop(model: ChatModel) -> bool:
    """Tell whether a request may name texts that stop the reply; OpenAI's reasoning models refuse that."""
    base, _ = _unbind(model)
    return not (base._llm_type == "openai-chat" and re.match(r"o\d|gpt-5", _name(base)))


def _unbind(model: ChatModel) -> tuple[BaseChatModel, JsonObject]:
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


def estimate_tokens(messages: Sequence[BaseMessage], options: JsonObject) -> int:
    """Estimate an upper bound of a prompt's tokens without the provider's tokenizer: one per two bytes, ten per
    message, and those of its images."""
    text = "".join(message.text + json.dumps(getattr(message, "tool_calls", [])) for message in messages)
    tools = json.dumps(options["tools"]) if options.get("tools") else ""
    images = sum(len(images_of(message)) for message in messages)
    return math.ceil((len(text.encode()) + len(tools.encode())) / 2) + 10 * len(messages) + IMAGE_TOKENS * images
