"""Limits that hold: what a call may cost is reserved before it is sent and settled when it is known."""

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from langchain_core.messages import BaseMessage

from reflective_agents.models.account import charged
from reflective_agents.models.bills import Reservation, charge_bills
from reflective_agents.models.request_settings import RequestSettings
from reflective_agents.state.context import Context
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.limits import NANO, Limit
from reflective_agents.state.run import NOTHING_SPENT, Usage


def report_nothing(_: str, **__: object) -> None:
    """Report to nobody."""


class Meter(RequestSettings):
    """Counts what a run spends and refuses what would exceed its limits.

    A call that was sent counts, whatever became of it: a failed or cancelled one keeps its whole reservation unless
    it is settled, since the provider may have done the work. Calls that do not fit only because others are in flight
    wait for them.
    """

    def __init__(
        self,
        context: Context,
        spent: Usage,
        tell: Callable[..., None] = report_nothing,
        conversation: Sequence[BaseMessage] = (),
    ) -> None:
        super().__init__(context)
        self.longest_answer = 0
        """Tokens of the longest answer so far."""
        self.least_answer_tokens: int | None = None
        """Fewest tokens that an answer must have room for, else no call is sent. Default: the most it may have."""
        self.tell = tell
        """Tells what was learned about a model, or thought: an event's name, and its data by name."""
        self.compactable: Sequence[BaseMessage] = ()
        """The conversation in the prompts, as far as it could be compacted."""
        self.long_messages: Sequence[BaseMessage] = ()
        """The long messages of the user's as they are shown, as far as less of them could be shown."""
        self.questions = [message for message in conversation if message.type == "human"]
        """What the run is asked, and was asked before."""
        self._usage: Usage = {**NOTHING_SPENT, **spent}
        self._started = time.monotonic()
        self._seconds_before = spent["seconds"]
        self._reserved_calls = int(context.answer_schema is not None and context.max_model_calls > 1)
        self._nano = math.ceil(round(self._usage["cost"] * NANO, 3))
        self._max_nano = None if context.max_cost is None else int(context.max_cost * NANO)
        self._held = self._held_nano = 0
        self._in_flight = 0
        self._settled = asyncio.Condition()
        self._counting = threading.Lock()

    @property
    def usage(self) -> Usage:
        """What the run has spent up to now."""
        return {**self._usage, "cost": self._nano / NANO, "seconds": round(self._seconds, 3)}

    @property
    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    @property
    def calls_left(self) -> int:
        """How many more calls may be sent."""
        return self._context.max_model_calls - self._reserved_calls - self._usage["model_calls"]

    def spend_last(self) -> None:
        """Release the call that is kept for putting the answer into its form."""
        self._reserved_calls = 0

    def limit(self, name: str, next_cost: float = 0) -> Limit:
        """Return a limit of the run, such as `max_model_calls`, with what is spent of it.

        Args:
            name: The setting.
            next_cost: What the next step might cost, where something is left but not enough.
        """
        spent: float = self.usage[name.removeprefix("max_")]  # type: ignore[literal-required]
        return self._context.limit(name, spent, next_cost)

    @property
    def nano_left(self) -> int | None:
        """How many nano-dollars may still be spent; None if any number."""
        return None if self._max_nano is None else self._max_nano - self._nano

    @property
    def question(self) -> str:
        """What the run is asked, in words."""
        return self.questions[-1].text if self.questions else ""

    def answer_budget(self, prompt: int, most: int, n: int = 1) -> int:
        """Return the room for each answer to a call: what the tokens left hold, at most `most` and at least
        `least_answer_tokens`.

        Args:
            prompt: Tokens of the prompt.
            most: Tokens that an answer may have.
            n: How many answers.
        """
        left = (self._context.max_total_tokens - self._usage["total_tokens"] - self._held - prompt) // n
        least = most if self.least_answer_tokens is None else min(self.least_answer_tokens, most)
        return max(min(left, most), least)

    @property
    def tokens_left(self) -> int:
        """How many more tokens may be spent."""
        return self._context.max_total_tokens - self._usage["total_tokens"]

    @property
    def seconds_left(self) -> float:
        """How many seconds of the run are left, 0 or more."""
        return max(self._context.max_seconds - self._seconds, 0.0)

    @property
    def deadline(self) -> float:
        """When the run's time is up, on the clock of the running event loop."""
        return asyncio.get_running_loop().time() + self.seconds_left

    def count(self, **amounts: int) -> None:
        """Add to counters that have no limit, such as `tool_calls=1`."""
        for name, amount in amounts.items():
            self._usage[name] += amount  # type: ignore[literal-required]

    def add(self, usage: Usage) -> None:
        """Charge what a strategy inside this one has spent; its time has passed here as well."""
        counted = {name: amount for name, amount in usage.items() if name not in ("seconds", "cost")}
        self.count(**counted)  # type: ignore[arg-type]
        self._nano += math.ceil(round(usage.get("cost", 0.0) * NANO, 3))

    def pass_time(self, seconds: float) -> None:
        """Charge time that has passed elsewhere."""
        self._seconds_before += seconds

    def check(self) -> None:
        """Raise LimitReached if no further call may be sent."""
        self._check_limits(0, 0)

    @asynccontextmanager
    async def reserve(self, tokens: int, nano: int | None = 0) -> AsyncIterator[Reservation]:
        """Hold one call, `tokens` and money for the body, in which the call is sent.

        Args:
            tokens: The most that it may take.
            nano: The most nano-dollars that it may cost; None if its price is not known.

        Raises:
            LimitReached: if the call would exceed a limit, however the calls in flight turn out.
        """
        async with charged(tokens, nano) as charge:
            await self._hold(tokens, nano or 0)
            reservation = Reservation(tokens, nano)
            try:
                yield reservation
            finally:
                self._release(reservation)
                charge.calls, charge.nano = reservation.calls, reservation.paid
                charge.tokens = reservation.input_tokens + reservation.output_tokens
                await self.wake()

    def take(self, tokens: int, nano: int | None = 0) -> Reservation:
        """Hold one call that somebody else sends, from any thread, until `give_back`; it waits for nobody.

        Args:
            tokens, nano: As `reserve`.

        Raises:
            LimitReached: if the call would exceed a limit if those in flight cost all that is held for them.
        """
        if not self._try_take(tokens, nano or 0):
            raise LimitReached(self._blocking_limit(tokens, nano or 0))
        return Reservation(tokens, nano)

    def give_back(self, reservation: Reservation) -> None:
        """End what `take` has begun. Calls that wait for room are woken by `wake`."""
        self._release(reservation)

    async def _hold(self, tokens: int, nano: int) -> None:
        async with self._settled:
            while not self._try_take(tokens, nano):
                await self._settled.wait()

    def _try_take(self, tokens: int, nano: int) -> bool:
        with self._counting:
            self._check_limits(tokens, nano)
            if self._must_wait(tokens, nano):
                return False
            self._usage["model_calls"] += 1
            charge_bills(calls=1)
            self._held += tokens
            self._held_nano += nano
            self._in_flight += 1
            return True

    def _blocking_limit(self, tokens: int, nano: int) -> Limit:
        if self._usage["total_tokens"] + self._held + tokens > self._context.max_total_tokens:
            return self.limit("max_total_tokens", self._held + tokens)
        return self.limit("max_cost", (self._held_nano + nano) / NANO)

    def _must_wait(self, tokens: int, nano: int) -> bool:
        """Tell whether a call would exceed a limit if those in flight cost all that is held for them."""
        if self._max_nano is not None and self._nano + self._held_nano + nano > self._max_nano:
            return True
        return self._usage["total_tokens"] + self._held + tokens > self._context.max_total_tokens

    def _check_limits(self, tokens: int, nano: int) -> None:
        context, usage = self._context, self._usage
        if self._seconds >= context.max_seconds:
            raise LimitReached(self.limit("max_seconds"))
        if self.calls_left <= 0:
            reserved = self._reserved_calls
            raise LimitReached(self.limit("max_model_calls", next_cost=1 + reserved if reserved else 0))
        if usage["total_tokens"] + tokens > context.max_total_tokens:
            raise LimitReached(self.limit("max_total_tokens", tokens))
        if self._max_nano is not None and self._nano + nano > self._max_nano:
            raise LimitReached(self.limit("max_cost", nano / NANO))

    def _release(self, reservation: Reservation) -> None:
        with self._counting:
            self._held -= reservation.tokens
            self._in_flight -= 1
            self._held_nano -= reservation.nano or 0
            if not reservation.settled:
                reservation.settle(reservation.tokens, 0, reservation.nano or 0)
            self._nano += reservation.paid
            self._usage["model_calls"] -= 1 - reservation.calls
            self._usage["unpriced_calls"] += reservation.calls if reservation.nano is None else 0
            self._usage["input_tokens"] += reservation.input_tokens
            self._usage["output_tokens"] += reservation.output_tokens
            spent = reservation.input_tokens + reservation.output_tokens
            self._usage["total_tokens"] += spent
            charge_bills(calls=reservation.calls - 1, tokens=spent)

    async def wake(self) -> None:
        """Let calls that wait for room look again."""
        async with self._settled:
            self._settled.notify_all()
