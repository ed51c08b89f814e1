"""What a call costs: estimated before it is sent, and settled by what the server reports."""

import json
import math
from collections.abc import Callable, Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from reflective_agents.models.bills import Reservation
from reflective_agents.models.images import TOKENS as IMAGE_TOKENS
from reflective_agents.models.images import images_of
from reflective_agents.models.meter import Meter
from reflective_agents.models.prices import Rates
from reflective_agents.models.thoughts import thought_of
from reflective_agents.models.usage import Tokens, is_cached, reported
from reflective_agents.state.json_types import JsonObject
from reflective_agents.state.limits import NANO
from reflective_agents.text.joined import joined

Prices = Callable[[int], Rates | None]
"""Returns the prices of a model for a prompt of so many tokens; None if nobody knows them."""
_ABSURD = 100
"""How many times what was reserved a server may report; more cannot be."""
_DEAREST = 1e6
"""Dollars that a server may say a call has cost; more cannot be."""


def estimate_tokens(messages: Sequence[BaseMessage], options: JsonObject) -> int:
    """Estimate an upper bound of a prompt's tokens without the provider's tokenizer: one per two bytes, ten per
    message, and those of its images."""
    text = "".join(message.text + _calls_text(message) for message in messages)
    tools = json.dumps(options["tools"]) if options.get("tools") else ""
    size = len(text.encode()) + len(tools.encode())
    images = sum(len(images_of(message)) for message in messages)
    return math.ceil(size / 2) + 10 * len(messages) + IMAGE_TOKENS * images


def _calls_text(message: BaseMessage) -> str:
    return json.dumps(message.tool_calls) if isinstance(message, AIMessage) and message.tool_calls else "[]"


def settle(reservation: Reservation, replies: Sequence[AIMessage], guess: int, prices: Prices) -> None:
    """Settle what is held for a call by what its replies report, else by an estimate.

    Args:
        reservation: What is held.
        replies: What the call has brought.
        guess: The estimated length of its prompt.
        prices: The prices of the model, by the length of a prompt.
    """
    if is_cached(replies):
        reservation.cancel()
        return
    used = tokens_of(replies, guess, reservation.tokens)
    reservation.settle(used.input, used.output, _paid(replies, used, prices(used.input)))


def tokens_of(replies: Sequence[AIMessage], guess: int, reserved: int) -> Tokens:
    """Return the tokens that a server reports, and an estimate in place of none or of absurdly many.

    Args:
        replies: What the call has brought.
        guess: The estimated length of its prompt.
        reserved: What was held for the call.
    """
    used = reported(replies)
    if used.input + used.output > _ABSURD * reserved:
        used = Tokens()
    # What the answer took is estimated from what is there, but within what was held: limits are never exceeded.
    written = "".join(reply.text + str(reply.tool_calls or "") + thought_of(reply) for reply in replies)
    held = max(reserved - guess, 1)
    answer = min(math.ceil(len(written.encode()) / 2), held)
    output = used.output
    # Of several replies llama.cpp counts one. No way of counting takes two words for a token.
    if len(replies) > 1 and 2 * output < sum(len(reply.text.split()) for reply in replies):
        output *= len(replies)
    return used._replace(input=used.input or guess, output=output or answer)


def _paid(replies: Sequence[AIMessage], used: Tokens, rates: Rates | None) -> int:
    """Return the nano-dollars that a call has cost: what the provider says, or the price of its tokens."""
    metadata = replies[0].response_metadata if replies else {}
    # The last piece of a stream has the cost of the whole.
    cost = (metadata.get("costs") or [metadata.get("cost")])[-1]
    if isinstance(cost, int | float) and 0 <= cost < _DEAREST:
        return math.ceil(cost * NANO)
    return rates.cost(used.input, used.output, used.cached, used.written) if rates else 0


def count_thoughts(name: str, replies: Sequence[AIMessage], meter: Meter) -> None:
    """Count the tokens that a model has thought before it answered, and tell what."""
    thought = joined(map(thought_of, replies))
    if not thought:
        return
    # Nothing is charged for this number, so a likely one is better than the upper bound of prompts.
    tokens = reported(replies).thought or math.ceil(len(thought.encode()) / 4)
    meter.count(thinking_tokens=tokens)
    meter.tell("thought", model=name, tokens=tokens, text=thought)


def longest_answer(base: BaseChatModel, meter: Meter) -> int:
    """Return how many tokens an answer may have where the request does not say."""
    return int(getattr(base, "max_tokens", None) or meter.max_answer_tokens)
