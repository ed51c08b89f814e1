"""Calls that an agent of the user's own sends: held, counted and paid like those of a strategy.

LangChain tells of each call to a chat model before it is sent. Holding it there keeps the limits, wherever in the agent
the call is made. The caller's account may have to wait, for a database or for calls in flight. Only an asynchronous
handler can wait on the event loop, and only a synchronous one can refuse a call of another thread: so there are two.
"""

import asyncio
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from reflective_agents.models.account import Settle, needs_charge, uncharged
from reflective_agents.models.account import hold as hold_in_account
from reflective_agents.models.bills import Reservation
from reflective_agents.models.costs import Prices, estimate_tokens, settle
from reflective_agents.models.faults import was_refused
from reflective_agents.models.meter import Meter
from reflective_agents.models.prices import no_price, rates_by_name
from reflective_agents.models.usage import reported
from reflective_agents.state.errors import Misuse, UnknownPrice
from reflective_agents.state.json_types import JsonObject


@dataclass
class _Call:
    """A call under way: `settle` is None until the account holds it."""

    reservation: Reservation
    guess: int
    prices: Prices
    settle: Settle | None = None


class Watch(BaseCallbackHandler):
    """Holds each call of an agent against the limits of a run and the account of its caller: one that would exceed
    them is not sent.

    Args:
        meter: The limits. The event loop must be running.
    """

    raise_error = True
    run_inline = True  # in the thread of the call, which must not go on before it is held

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._open: dict[UUID, _Call] = {}
        self._seen: set[str | None] = set()
        # The thread of the event loop, where waiting for the account would stop the very loop that serves it.
        self._thread = threading.get_ident()
        self._is_charged = needs_charge()
        self._settling: list[Future[None]] = []
        self.loop = asyncio.get_running_loop()

    @property
    def handlers(self) -> list[BaseCallbackHandler]:
        """The handlers to watch an agent with."""
        return [self, _Charging(self)] if self._is_charged else [self]

    def on_chat_model_start(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        """Hold a call, except on the event loop where there is an account: `_Charging` waits for it there.

        Raises:
            LimitReached, UnknownPrice: as `hold`.
        """
        if self._is_charged and threading.get_ident() == self._thread:
            return
        self.hold(*args, run_id=run_id, **kwargs)
        if self._open[run_id].settle is None:
            # Called on another thread, which may wait while the loop asks the account.
            charging = asyncio.run_coroutine_threadsafe(self.charge(run_id), self.loop)
            try:
                charging.result(self._meter.seconds_left)
            finally:
                charging.cancel()

    def hold(
        self,
        serialized: JsonObject,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: JsonObject | None = None,
        **kwargs: Any,
    ) -> None:
        """Hold a call against the limits of the run.

        Raises:
            LimitReached: if it would exceed a limit.
            UnknownPrice: if there is a limit of money, and nobody knows what the model costs.
        """
        about, sent = metadata or {}, kwargs.get("invocation_params") or {}
        guess = estimate_tokens(messages[0], sent)
        longest = int(about.get("ls_max_tokens") or self._meter.max_answer_tokens)
        # Gemini calls `n` candidate_count.
        most = longest * int(sent.get("n") or sent.get("candidate_count") or 1)
        name = str(about.get("ls_model_name") or serialized.get("name"))
        address = str(serialized.get("kwargs", {}).get("openai_api_base") or "")
        prices = partial(rates_by_name, name, str(about.get("ls_provider")), address, self._meter.prices)
        rates = prices(guess)
        if rates is None and self._meter.nano_left is not None:
            raise UnknownPrice(no_price(name))
        reservation = self._meter.take(guess + most, rates and rates.cost(guess, most))
        self._open[run_id] = _Call(reservation, guess, prices, None if needs_charge() else uncharged)

    async def charge(self, run_id: UUID) -> None:
        """Hold a call against the account of the caller.

        Raises:
            LimitReached, UnknownPrice: as `account.Account.hold`.
        """
        call = self._open[run_id]
        if call.settle:
            return
        try:
            call.settle = await hold_in_account(call.reservation.tokens, call.reservation.nano)
        finally:
            if call.settle is None:  # so it is not sent
                del self._open[run_id]
                call.reservation.cancel()
                self._meter.give_back(call.reservation)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """Settle a call by what its reply says that it has cost.

        Raises:
            Misuse: if it has blocked the event loop, where nothing can wait for the account.
        """
        if run_id not in self._open:
            if self._is_charged and threading.get_ident() == self._thread:
                raise Misuse("the agent blocks the event loop while a model answers: let it call the model by ainvoke")
            return
        call = self._open.pop(run_id)
        generations = chain.from_iterable(response.generations)
        messages = [each.message for each in generations if isinstance(each, ChatGeneration)]
        replies = [message for message in messages if isinstance(message, AIMessage)]
        # Of what is counted here the agent's state holds the message as well: see `count_unseen`.
        self._seen |= {reply.id for reply in replies}
        settle(call.reservation, replies, call.guess, call.prices)
        self._end(call)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Count a call that has failed: it may have cost what is held for it, unless the provider refused it."""
        if run_id not in self._open:
            return
        call = self._open.pop(run_id)
        self._meter.count(failed_calls=1)
        if isinstance(error, Exception) and was_refused(error):
            call.reservation.settle(0, 0)
        self._end(call)

    def _end(self, call: _Call) -> None:
        self._meter.give_back(call.reservation)
        if call.settle is not uncharged:
            self._settling.append(asyncio.run_coroutine_threadsafe(self._settle(call), self.loop))

    @staticmethod
    async def _settle(call: _Call) -> None:
        reservation = call.reservation
        if call.settle:
            spent = reservation.input_tokens + reservation.output_tokens
            await call.settle(reservation.calls, spent, reservation.paid)

    async def close(self) -> None:
        """End the calls of which nothing more was told, and let others that wait for room look again."""
        # An agent that was cancelled is told of no end: what is held for its calls counts as spent.
        while self._open:
            self._end(self._open.popitem()[1])
        await self._meter.wake()
        await asyncio.gather(*map(asyncio.wrap_future, self._settling))

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


class _Charging(AsyncCallbackHandler):
    """Lets the calls that are made on the event loop wait for the account."""

    raise_error = True

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    async def on_chat_model_start(self, *args: Any, run_id: UUID, **kwargs: Any) -> None:
        """Hold a call. Of a synchronous one LangChain tells on a loop of its own, and does not listen."""
        if asyncio.get_running_loop() is self._watch.loop:
            self._watch.hold(*args, run_id=run_id, **kwargs)
            await self._watch.charge(run_id)
