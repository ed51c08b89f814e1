"""Sending requests to models: metered, timed, retried where that may help, with `n` where the provider has it.

What `nodes.asking` asks passes four functions on its way to the provider:

    request                    each model in turn, the fallbacks last; n replies at once, else one by one
    _send_as_supported         without what the server is known to refuse, within its context, or from the cache
    sending.send_with_retries  up to three attempts
    sending._send              hold what it may cost, await or stream the reply, settle what it has cost
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.cache import cache_entry
from reflective_agents.models.capabilities import (
    SAMPLING,
    ChatModel,
    ModelCapabilities,
    capabilities_of,
    is_forced,
    name_of,
    takes_n,
    takes_seed,
    unbind,
    way_of_acting,
)
from reflective_agents.models.context_window import (
    HIGH,
    SMALLEST_ANSWER,
    advice,
    check_length,
    context_of,
    likely_prompt,
    likely_tokens,
    too_long_conversation,
)
from reflective_agents.models.costs import estimate_tokens, longest_answer
from reflective_agents.models.fallbacks import in_turn, rebound
from reflective_agents.models.images import about_images, show_images
from reflective_agents.models.language import in_language
from reflective_agents.models.meter import Meter
from reflective_agents.models.refusals import context_size, is_unsupported, refused_option
from reflective_agents.models.sending import Listener, merged, send_with_retries, thinking_options
from reflective_agents.models.structured import was_ignored
from reflective_agents.models.tool_form import ToolForm, tool_form
from reflective_agents.models.turns import escape_turn_signs
from reflective_agents.offline import OfflineChatModel
from reflective_agents.state.errors import LimitReached, ModelFailed, Refused, TooLong
from reflective_agents.state.json_types import JsonObject


async def request(
    model: ChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    *,
    n: int = 1,
    listener: Listener | None = None,
    judging: bool = False,
    **options: Any,
) -> list[AIMessage]:
    """Ask a model, with up to three attempts if the provider is busy or fails; every attempt is a call that counts.

    Args:
        model: The model, with its tools bound.
        messages: The prompt.
        meter: The limits of the run.
        n: Candidates asked for: in this one request if the model can, else in requests at once.
        listener: Who listens while the reply comes.
        judging: Whether a judge or critic is asked, who may have a temperature of their own.
        options: Further options of the call, such as a `seed` of its own, instead of that of the run.

    Returns:
        One message a candidate; a provider may return fewer than n. Only the first carries the request's usage.

    Raises:
        LimitReached: if the next attempt would exceed a limit.
        ModelFailed: if no attempt gave a reply, nor did those of the fallback models; it is `Refused` if the server
            does not take the request as it is, and `TooLong` if the prompt does not fit into the model's context.
    """
    base, bound = unbind(model)
    prompt = in_language(messages, meter.language, meter.question)
    prompt = escape_turn_signs(show_images(prompt, meter.questions))
    parameters = meter.parameters(judging)
    following = listener if listener and listener.is_subscribed else None
    chats = in_turn(base, meter)
    for chat, instead in zip(chats, [*chats[1:], None], strict=True):
        by_run = {"seed": meter.seed} if meter.seed is not None and takes_seed(chat) else {}
        # The narrower wins: the run's seed, the settings' sampling, what is bound to the model, this call's
        # own options.
        sent = merged({**by_run, **parameters}, {**rebound(base, chat, bound), **options})
        if isinstance(chat, OfflineChatModel):
            sent["request"] = meter.question
        try:
            if n == 1:
                return await _send_as_supported(chat, prompt, meter, sent, following)
            if takes_n(chat):
                return await _send_as_supported(chat, prompt, meter, {**sent, "n": n})
            return await _one_by_one(chat, prompt, meter, n, sent)
        except ModelFailed as failure:
            if n > 1 and _refuses_n(chat, failure, n):
                replies = await _one_by_one(chat, prompt, meter, n, sent)
                # Only now that the request has succeeded without `n`: the refusal may have been about
                # something else.
                _learn(chat, "n", meter)
                return replies
            if instead is None or _is_about_a_form(failure, sent):
                raise
            _note_failure(chat, instead, failure, meter)
    raise AssertionError("a model answers or fails")


def _refuses_n(chat: BaseChatModel, failure: ModelFailed, n: int) -> bool:
    """Tell whether a server takes no request for several candidates."""
    return isinstance(failure, Refused) and refused_option(capabilities_of(chat), str(failure), {"n": n}) == "n"


def _is_about_a_form(failure: ModelFailed, options: JsonObject) -> bool:
    """Tell whether a model refuses a form, which is asked of it in another way before another one is asked."""
    forced = is_forced(options.get("tool_choice")) or "response_format" in options.get("extra_body", {})
    return isinstance(failure, Refused) and not isinstance(failure, TooLong) and forced


def _note_failure(chat: BaseChatModel, instead: BaseChatModel, failure: ModelFailed, meter: Meter) -> None:
    """Let a model rest that has failed, unless it was this request that it did not take."""
    if not isinstance(failure, Refused):
        capabilities_of(chat).failed_at = time.monotonic()
    meter.tell("fallback", model=name_of(chat), instead=name_of(instead), reason=str(failure))


def seeded(options: JsonObject, index: int) -> JsonObject:
    """Give the request for the sample at an index, from 0, a seed of its own if it has any: samples that are asked for
    one by one would all be alike else."""
    seed = options.get("seed")
    return options if seed is None else {**options, "seed": seed + index}


async def _one_by_one(
    base: BaseChatModel, messages: Sequence[BaseMessage], meter: Meter, n: int, options: JsonObject
) -> list[AIMessage]:
    """Request several candidates from a server that gives one per request; those that fail are missing."""
    # No TaskGroup, which would cancel the candidates that are still to come when one fails or meets a limit.
    requests = [_send_as_supported(base, messages, meter, seeded(options, index)) for index in range(n)]
    results = await asyncio.gather(*requests, return_exceptions=True)
    replies: list[AIMessage] = []
    failures: list[BaseException] = []
    for result in results:
        if isinstance(result, BaseException):
            failures.append(result)
        else:
            replies += result
    for failure in failures:
        if not isinstance(failure, LimitReached | ModelFailed):
            raise failure
    if not replies:
        raise failures[0]
    return replies


async def _send_as_supported(
    base: BaseChatModel,
    messages: Sequence[BaseMessage],
    meter: Meter,
    options: JsonObject,
    listener: Listener | None = None,
) -> list[AIMessage]:
    """Send a request in the way that the model can answer, or take the reply from the cache.

    Raises:
        Refused: if the server refuses it in every way there is; also if it refuses n, which the caller has to mend.
        TooLong: if the prompt does not fit into the model's context.
    """
    capabilities = capabilities_of(base).trial()
    refused: list[str] = []
    while True:
        form = tool_form(capabilities, options, meter.acting)
        prompt = form.prompt(messages)
        sent = _supported_options(base, prompt, form.options(base, options), capabilities, meter)
        check_length(base, prompt, sent, meter)
        sent = _within_budget(base, prompt, sent, meter)
        following = listener if form.streams else None
        entry = cache_entry(base, prompt, sent)
        try:
            replies = await entry.get() if entry else None
            if replies is None:
                replies = await send_with_retries(base, prompt, meter, following, sent)
                if entry:
                    await entry.keep(replies)
            elif following:
                await following.on_token(replies[0].text)
        except TooLong as error:
            tokens = likely_tokens(base, prompt, sent, meter)
            known = capabilities.context_tokens
            capabilities.context_tokens = _learn_context_size(base, str(error), tokens, known, meter)
            if not _shorter_answer_may_fit(base, prompt, sent, tokens, meter):
                shorter = too_long_conversation(base, prompt, sent, meter, refused=True)
                raise shorter or TooLong(f"{error}{advice(meter)}") from error
        except Refused as error:
            _check_images(base, prompt, error, meter)
            option = _option_to_leave_out(capabilities, form, sent, error, meter)
            capabilities.give_up(option)
            if option != "json_schema" or is_unsupported(str(error)):
                refused.append(option)
        else:
            for option in refused:  # for without it the request has succeeded
                _learn(base, option, meter)
            if form.way == "schema":
                _notice_ignored_schema(base, replies, meter)
            return [form.read(reply) for reply in replies]


def _supported_options(
    base: BaseChatModel,
    prompt: Sequence[BaseMessage],
    options: JsonObject,
    capabilities: ModelCapabilities,
    meter: Meter,
) -> JsonObject:
    """Return a request's options without what the server does not take, and with those of thinking."""
    left_out = [name for name in ("seed", "logprobs") if not getattr(capabilities, name)]
    left_out += [name for name in SAMPLING if name not in capabilities.sampling]
    supported = {name: value for name, value in options.items() if name not in left_out}
    sent = merged(supported, thinking_options(capabilities, meter.thinking))
    return _within_context_size(base, prompt, sent, meter)


def _shorter_answer_may_fit(
    base: BaseChatModel, prompt: Sequence[BaseMessage], options: JsonObject, tokens: int, meter: Meter
) -> bool:
    """Tell whether a request that was too long is mostly room for an answer, of which less is known to do now."""
    is_mostly_answer = 4 * int(options.get("max_tokens") or longest_answer(base, meter)) > tokens
    return is_mostly_answer and _within_context_size(base, prompt, options, meter) != options


def _check_images(base: BaseChatModel, prompt: Sequence[BaseMessage], refusal: Refused, meter: Meter) -> None:
    """Raise ModelFailed if what a server refuses are the images of a prompt: no other way of asking helps."""
    if about_images(prompt, str(refusal)) and is_unsupported(str(refusal)):
        _learn(base, "images", meter)
        raise ModelFailed(f"{name_of(base)} takes no images: choose a model that does ({refusal})") from refusal


def _option_to_leave_out(
    capabilities: ModelCapabilities, form: ToolForm, options: JsonObject, refusal: Refused, meter: Meter
) -> str:
    """Return the option without which a refused request is sent again.

    Raises:
        Refused: the refusal, if there is none, the settings demand it, or it is n.
    """
    option = refused_option(capabilities, str(refusal), options)
    if option is None and form.way == "schema" and len(capabilities.structured) > 1:
        option = "json_schema"
    if option is None or option == "n" or _is_set(option, meter):
        raise refusal
    return option


def _is_set(option: str, meter: Meter) -> bool:
    """Tell whether a refused option is the way of acting that the settings demand."""
    return (option, meter.acting) in (("tools", "tools"), ("json_schema", "schema"))


def _notice_ignored_schema(base: BaseChatModel, replies: Sequence[AIMessage], meter: Meter) -> None:
    """Learn that a server does not hold its model to a step: no reply is an object, twice in a row."""
    capabilities = capabilities_of(base)
    if not all(was_ignored(reply, "json_schema") for reply in replies):
        capabilities.shortfalls["step"] = 0
    elif capabilities.fell_short("step") and meter.acting != "schema":
        _learn(base, "json_schema", meter)


def _learn(base: BaseChatModel, option: str, meter: Meter) -> None:
    """Remember that a model does not take an option, and tell it once."""
    capabilities = capabilities_of(base)
    # A copy: requests at once are refused together, and the event must come once.
    before = capabilities.trial()
    capabilities.give_up(option)
    if capabilities != before:
        in_words = option in ("tools", "json_schema")
        instead = {"instead": way_of_acting(capabilities, meter.acting)} if in_words else {}
        meter.tell("learned", model=name_of(base), refused=option, **instead)


def _learn_context_size(base: BaseChatModel, refusal: str, tokens: int, known: int | None, meter: Meter) -> int | None:
    """Remember and return how many tokens a model's context holds: the server names the number, and sends no other.
    Where it names none, three quarters of what it has refused are assumed.

    Args:
        base: The model.
        refusal: What the server says.
        tokens: Likely tokens of the request.
        known: What was known when it was sent.
        meter: The limits of the run.
    """
    capabilities = capabilities_of(base)
    size = context_size(refusal)
    before = capabilities.context_tokens
    if size is None:
        capabilities.assume(tokens, known)
    elif size != before:
        capabilities.context_tokens = size
        capabilities.is_assumed = False
        capabilities.learned_at = capabilities.learned_at or time.monotonic()
    if capabilities.context_tokens != before:
        assumed = {"assumed": True} if capabilities.is_assumed else {}
        meter.tell("learned", model=name_of(base), context_tokens=capabilities.context_tokens, **assumed)
    return capabilities.context_tokens


def _within_context_size(
    base: BaseChatModel, prompt: Sequence[BaseMessage], options: JsonObject, meter: Meter
) -> JsonObject:
    """Limit the answer to what the prompt leaves of the context, where its size is known: at most a quarter of it, and
    at least an eighth. It is a quarter until the server has reported how it counts."""
    # A model object of the user's that sets no limit is sent that of the run.
    usual = longest_answer(base, meter) if hasattr(base, "max_tokens") else 0
    most = int(options.get("max_tokens") or usual)
    size = context_of(base, meter)
    if not size or not most:
        return options
    prompt_tokens = likely_prompt(base, prompt, options) if capabilities_of(base).is_calibrated else 0
    left = size - int(prompt_tokens / HIGH)  # a text may have more tokens than is likely
    longest = max(min(left, size // 4), size // 8, SMALLEST_ANSWER)
    return {**options, "max_tokens": longest} if most > longest else options


def _within_budget(
    base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject, meter: Meter
) -> JsonObject:
    """Limit the answer to the tokens that are left, where fewer than the most will do."""
    if meter.least_answer_tokens is None or "max_tokens" not in type(base).model_fields:
        return options
    most = int(options.get("max_tokens") or longest_answer(base, meter))
    budget = meter.answer_budget(estimate_tokens(messages, options), most, options.get("n", 1))
    return {**options, "max_tokens": budget} if budget < most else options
