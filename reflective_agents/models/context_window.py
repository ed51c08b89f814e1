"""How much of a model's context a prompt takes, counted as its server counts: by what it has reported so far.

Limits rest on `costs.estimate_tokens`, an upper bound. Whether a prompt fits is asked of the likely number instead:
a conversation would be shortened at half of the context otherwise.
"""

import math
from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.capabilities import capabilities_of, name_of
from reflective_agents.models.costs import estimate_tokens, longest_answer
from reflective_agents.models.images import images_of
from reflective_agents.models.meter import Meter
from reflective_agents.models.usage import is_cached, reported
from reflective_agents.state.errors import ConversationTooLong, TooLong
from reflective_agents.state.json_types import JsonObject

HIGH = 0.85
"""Share of what a prompt may have, above which the conversation in it is compacted."""
LOW = 0.4
"""Share of what is left beside the other parts of a prompt that a compacted conversation may take: far enough below, so
that the beginning of the prompts stays the same for many calls."""
LEAST = 0.1
"""Share of what a prompt may have that a conversation always has, however long the other parts of the prompt are."""
BYTES_OF_MESSAGE = 1.5
"""Bytes of a message of the user's for each token of a context, above which it is shown in part: in English, about half
of the longest prompt."""
SMALLEST_ANSWER = 16
"""Tokens that a prompt has to leave for an answer."""
_FEWEST = 0.5
"""Tokens for each estimated one, of which a text has more in every tokenizer of today, unless it is mostly blanks."""
_SURE = 1_000
"""Expected tokens of a prompt from which on a report that is far below says something."""
_FAR_BELOW = 0.5


def context_of(base: BaseChatModel, meter: Meter) -> int | None:
    """Return how many tokens a prompt and its answer may have together; None if nobody knows."""
    known = filter(None, (meter.context_window, capabilities_of(base).context_tokens))
    return min(known, default=None)


def longest_prompt(base: BaseChatModel, meter: Meter) -> int | None:
    """Return how many tokens a prompt may have beside an answer, which has a quarter of the context at most."""
    size = context_of(base, meter)
    return None if size is None else size - min(longest_answer(base, meter), size // 4)


def longest_estimated(base: BaseChatModel, meter: Meter) -> int | None:
    """Return how long a prompt may be in estimated tokens, as `costs.estimate_tokens` counts them."""
    most = longest_prompt(base, meter)
    return None if most is None else int(most / capabilities_of(base).tokens_per_estimated)


def check_length(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject, meter: Meter) -> None:
    """Hold a prompt against the model's context before it is sent, where that is known.

    Raises:
        ConversationTooLong: if it is above the high mark, and compacting its conversation would help.
        TooLong: if it cannot fit however its tokens are counted; a size that is assumed is no proof of that.
    """
    size = context_of(base, meter)
    most = longest_prompt(base, meter)
    if size is None or most is None:
        return
    estimated = estimate_tokens(messages, options)
    rate = capabilities_of(base).tokens_per_estimated
    if estimated * rate > HIGH * most:
        shorter = too_long_conversation(base, messages, options, meter)
        if shorter:
            raise shorter
    # Refused here only beyond doubt: the likely number may be too high, and the server knows better.
    least = int(estimated * min(rate, _FEWEST)) + SMALLEST_ANSWER
    if least > size and not capabilities_of(base).is_assumed:
        raise TooLong(f"{name_of(base)} holds {size} tokens, and the prompt alone has about {least}{advice(meter)}")


def check_conversation(base: BaseChatModel, meter: Meter) -> None:
    """Hold the conversation of a run against the model's context, before anybody is shown it.

    Raises:
        ConversationTooLong: if it is above the high mark by itself.
    """
    longest = longest_estimated(base, meter)
    if longest is not None and estimate_tokens(meter.compactable, {}) > HIGH * longest:
        raise ConversationTooLong(int(LOW * longest))


def always_fits(base: BaseChatModel, conversation: Sequence[BaseMessage], meter: Meter) -> bool:
    """Tell whether a conversation is so short for a model that it is shown whole, however long the other parts of a
    prompt are."""
    longest = longest_estimated(base, meter)
    return longest is not None and estimate_tokens(conversation, {}) <= LEAST * longest


def too_long_conversation(
    base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject, meter: Meter, *, refused: bool = False
) -> ConversationTooLong | None:
    """Return the exception that has the conversation in a prompt made shorter; None if that would not help.

    It says how many estimated tokens the conversation may have beside the other parts of the prompt; half of what it
    has, where a server has refused what seemed to fit, or nobody knows what it holds. First of all less is shown of a
    message that is longer than is known now that it may be.
    """
    longest = longest_estimated(base, meter) or 0
    conversation = estimate_tokens(meter.compactable, {})
    # Its node begins anew and shows less of that message, which may be all that is needed.
    if _holds_long_message(base, meter):
        return ConversationTooLong(max(conversation, 1))
    if not meter.compactable:
        return None
    shorter = longest and _shorter(estimate_tokens(messages, options), longest, meter)
    if not shorter and refused and conversation > LEAST * longest:
        # The estimate was too low for this text, so no number that is derived from it helps.
        return ConversationTooLong(conversation // 2)
    return shorter or None


def _holds_long_message(base: BaseChatModel, meter: Meter) -> bool:
    """Tell whether more is shown of a message of the user's than is known now that may be."""
    most = BYTES_OF_MESSAGE * (context_of(base, meter) or math.inf)
    return any(len(message.text.encode(errors="surrogatepass")) > most for message in meter.long_messages)


def likely_tokens(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject, meter: Meter) -> int:
    """Return how many tokens a request has, prompt and answer together, as its server is likely to count them."""
    return likely_prompt(base, messages, options) + int(options.get("max_tokens") or longest_answer(base, meter))


def likely_prompt(base: BaseChatModel, messages: Sequence[BaseMessage], options: JsonObject) -> int:
    """Return how many tokens a prompt has, as its server is likely to count them."""
    return int(estimate_tokens(messages, options) * capabilities_of(base).tokens_per_estimated)


def holds(base: BaseChatModel, messages: Sequence[BaseMessage], meter: Meter) -> bool:
    """Tell whether a model's context is likely to hold a prompt and its answer; yes, where nobody knows its size."""
    size = context_of(base, meter)
    return size is None or likely_tokens(base, messages, {}, meter) <= size


def make_way(prompt: Sequence[BaseMessage], longest: int, meter: Meter) -> None:
    """Hold a prompt against what it may have, before parts of it are left out: the conversation is compacted first.

    Raises:
        ConversationTooLong: if the prompt has more than `longest` estimated tokens, and that would help.
    """
    length = estimate_tokens(prompt, {})
    if length > longest and (shorter := _shorter(length, longest, meter)):
        raise shorter


def _shorter(length: int, longest: int, meter: Meter) -> ConversationTooLong | None:
    if not meter.compactable or longest <= 0:  # where nothing is left to be spent, a shorter prompt does not help
        return None
    conversation = estimate_tokens(meter.compactable, {})
    most = int(max(LOW * (longest - max(length - conversation, 0)), LEAST * longest))
    return ConversationTooLong(most) if conversation > most else None


def advice(meter: Meter) -> str:
    """Say what shortens a prompt, by the settings of the run."""
    compacts = "" if meter.compacts else "set compact=auto, "
    return f": {compacts}lower max_answer_tokens, give fewer tools or examples, or choose a model with a larger context"


def learn_count(
    base: BaseChatModel, replies: Sequence[AIMessage], messages: Sequence[BaseMessage], guess: int, meter: Meter
) -> None:
    """Learn from a report how many tokens a model's server counts for each estimated one.

    A report far below what is expected is told once: the server has cut the prompt without a word, as Ollama does. One
    above the context that was assumed says that this holds more.
    """
    tokens = reported(replies).input
    capabilities = capabilities_of(base)
    if capabilities.is_assumed and capabilities.context_tokens:
        # Never beyond the estimate, which is an upper bound: some servers report absurd numbers.
        capabilities.context_tokens = max(capabilities.context_tokens, min(tokens, guess))
    # Images are estimated at a flat price, and would spoil the rate of words.
    if not tokens or is_cached(replies) or any(map(images_of, messages)):
        return
    expected = math.ceil(guess * capabilities.tokens_per_estimated)
    if expected < _SURE or tokens > _FAR_BELOW * expected:
        capabilities.calibrate(min(tokens, guess), guess)
    elif not capabilities.cuts_prompts:
        capabilities.cuts_prompts = True
        meter.tell("prompt_cut", model=name_of(base), reported=tokens, expected=expected, setting="context_window")
