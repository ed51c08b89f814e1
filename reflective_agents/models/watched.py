"""Calls that an agent of the user's own sends: held, counted and paid like those of a strategy.

LangChain tells of each call to a chat model before it is sent. Holding it there keeps the limits, wherever in the agent
the call is made.
"""

from functools import partial
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from reflective_agents.models.costs import Prices, estimate_tokens, settle
from reflective_agents.models.faults import was_refused
from reflective_agents.models.meter import Meter, Reservation
from reflective_agents.models.prices import no_price, rates_by_name
from reflective_agents.models.usage import reported
from reflective_agents.state.errors import UnknownPrice
from reflective_agents.state.json_types import JsonObject


class Watch(BaseCallbackHandler):
    """Holds each call of an agent against the limits of a run: one that would exceed them is not sent.

    Args:
        meter: The limits.
    """

    raise_error = True
    run_inline = True  # in the thread of the call, which must not go on before it is held

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._open: dict[UUID, tuple[Reservation, int, Prices]] = {}
        self._seen: set[str | None] = set()

    def on_chat_model_start(
        self,
        serialized: JsonObject,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: JsonObject | None = None,
        **kwargs: Any,
    ) -> None:
        """Hold a call.

        Raises:
            LimitReached: if it would exceed a limit.
            UnknownPrice: if there is a limit of money, and nobody knows what the model costs.
        """
        known, sent = metadata or {}, kwargs.get("invocation_params") or {}
        guess = estimate_tokens(messages[0], sent)
        longest = int(known.get("ls_max_tokens") or self._meter.max_answer_tokens)
        most = longest * int(sent.get("n") or sent.get("candidate_count") or 1)
        name = str(known.get("ls_model_name") or serialized.get("name"))
        address = str(serialized.get("kwargs", {}).get("openai_api_base") or "")
        prices = partial(rates_by_name, name, str(known.get("ls_provider")), address, self._meter.prices)
        rates = prices(guess)
        if rates is None and self._meter.nano_left is not None:
            raise UnknownPrice(no_price(name))
        held = self._meter.take(guess + most, rates and rates.cost(guess, most))
        self._open[run_id] = held, guess, prices

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Settle a call by what its reply says that it has cost."""
        if run_id not in self._open:
            return
        held, guess, prices = self._open.pop(run_id)
        given = [one for batch in response.generations for one in batch if isinstance(one, ChatGeneration)]
        replies = [one.message for one in given if isinstance(one.message, AIMessage)]
        self._seen |= {reply.id for reply in replies}
        settle(held, replies, guess, prices)
        self._meter.give_back(held)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Count a call that has failed: it may have cost what is held for it, unless the provider refused it."""
        if run_id not in self._open:
            return
        held, *_rest = self._open.pop(run_id)
        self._meter.count(failed_calls=1)
        if isinstance(error, Exception) and was_refused(error):
            held.settle(0, 0)
        self._meter.give_back(held)

    async def close(self) -> None:
        """End the calls of which nothing more was told, and let others that wait for room look again."""
        while self._open:
            _, (held, *_rest) = self._open.popitem()
            self._meter.give_back(held)
        await self._meter.wake()

    def count_unseen(self, replies: list[AIMessage]) -> None:
        """Count replies that come of calls elsewhere, such as on another server, by what they say of their usage."""
        for reply in replies:
            if reply.usage_metadata is not None and reply.id not in self._seen:
                used = reported([reply])
                self._meter.count(
                    model_calls=1,
                    input_tokens=used.input,
                    output_tokens=used.output,
                    total_tokens=used.input + used.output,
                    unpriced_calls=1,
                )
