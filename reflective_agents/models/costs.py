"""What a call costs: estimated before it is sent, and settled by what the server reports."""

import json
import math
from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.images import TOKENS as IMAGE_TOKENS
from reflective_agents.models.images import images_of
from reflective_agents.models.meter import Meter, Reservation
from reflective_agents.models.prices import Rates
from reflective_agents.models.thoughts import thought_of
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.limits import NANO

_ABSURD = 100
"""How many times what was reserved a server may report; more cannot be."""


def estimate_tokens(messages: Sequence[BaseMessage], options: JsonObject) -> int:
    """Estimate an upper bound of a prompt's tokens without the provider's tokenizer: one per two bytes, ten per
    message, and those of its images."""
    text = "".join(message.text + json.dumps(getattr(message, "tool_calls", [])) for message in messages)
    tools = json.dumps(options["tools"]) if options.get("tools") else ""
    images = sum(len(images_of(message)) for message in messages)
    return math.ceil((len(text.encode()) + len(tools.encode())) / 2) + 10 * len(messages) + IMAGE_TOKENS * images


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


def count_thoughts(name: str, replies: Sequence[AIMessage], meter: Meter) -> None:
    """Count the tokens that a model has thought before it answered, and tell what."""
    thought = "\n".join(filter(None, (thought_of(reply) for reply in replies)))
    if not thought:
        return
    used = replies[0].usage_metadata
    tokens = used.get("output_token_details", {}).get("reasoning") if used else None
    tokens = tokens or math.ceil(len(thought.encode()) / 4)
    meter.count(thinking_tokens=tokens)
    meter.tell("thought", model=name, tokens=tokens, text=thought)


def longest_answer(base: BaseChatModel, meter: Meter) -> int:
    """Return how many tokens an answer may have where the request does not say."""
    return int(getattr(base, "max_tokens", None) or meter.max_answer_tokens)
