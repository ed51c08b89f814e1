"""Limits that hold: what a call may cost is reserved before it is sent and settled when it is known."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

from state.context import Context
from state.errors import LimitReached
from state.run import Usage

_bills: ContextVar[tuple["Bill", ...]] = ContextVar("bills", default=())


class Bill:
    """What one part of a run has spent, with everything that it has started."""

    def __init__(self) -> None:
        self.calls = 0
        self.tokens = 0


@contextmanager
def billed() -> Iterator[Bill]:
    """Count what is spent within the body, tasks that it starts included."""
    bill = Bill()
    token = _bills.set((*_bills.get(), bill))
    try:
        yield bill
    finally:
        _bills.reset(token)


class Reservation:
    """One call under way: `tokens` are held for it until `settle` says what it cost."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.input_tokens = 0
        self.output_tokens = 0
        self.settled = False

    def settle(self, input_tokens: int, output_tokens: int) -> None:
        """Replace the reservation by what the call has cost."""
        self.input_tokens, self.output_tokens, self.settled = input_tokens, output_tokens, True


class Meter:
    """Counts what a run spends and refuses what would exceed its limits.

    A call that was sent counts, whatever became of it: a failed or cancelled one keeps its whole reservation unless
    it is settled, since the provider may have done the work. Calls that do not fit only because others are in flight
    wait for them.
    """

    def __init__(self, context: Context, spent: Usage) -> None:
        self._context = context
        self._usage: Usage = {**spent}
        self._started = time.monotonic()
        self._seconds_before = spent["seconds"]
        self._held = 0
        self._in_flight = 0
        self._settled = asyncio.Condition()

    @property
    def usage(self) -> Usage:
        """What the run has spent up to now."""
        return {**self._usage, "seconds": round(self._seconds, 3)}

    @property
    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._started

    @property
    def calls_left(self) -> int:
        """How many more calls may be sent."""
        return self._context.max_model_calls - self._usage["model_calls"]

    @property
    def max_seconds(self) -> float:
        """The run's limit of time."""
        return self._context.max_seconds

    @property
    def call_timeout(self) -> float:
        """Seconds that one call may take."""
        return self._context.call_timeout

    @property
    def max_answer_tokens(self) -> int:
        """The largest answer a call may bring."""
        return self._context.max_answer_tokens

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
        self.count(**{name: amount for name, amount in usage.items() if name != "seconds"})  # type: ignore[arg-type]

    def check(self) -> None:
        """Raise LimitReached if no further call may be sent."""
        self._refuse(0)

    @asynccontextmanager
    async def reserve(self, tokens: int) -> AsyncIterator[Reservation]:
        """Hold one call and `tokens` for the body, in which the call is sent.

        Raises:
            LimitReached: if the call would exceed a limit, however the calls in flight turn out.
        """
        async with self._settled:
            self._refuse(tokens)
            while self._usage["total_tokens"] + self._held + tokens > self._context.max_total_tokens:
                await self._settled.wait()
                self._refuse(tokens)
            self._usage["model_calls"] += 1
            for bill in _bills.get():
                bill.calls += 1
            self._held += tokens
            self._in_flight += 1
        reservation = Reservation(tokens)
        try:
            yield reservation
        finally:
            self._release(reservation)
            await self._wake()

    def _refuse(self, tokens: int) -> None:
        context, usage = self._context, self._usage
        if self._seconds >= context.max_seconds:
            raise LimitReached(f"max_seconds={context.max_seconds:g} reached (seconds={self._seconds:.1f})")
        if usage["model_calls"] >= context.max_model_calls:
            raise LimitReached(
                f"max_model_calls={context.max_model_calls} reached (model_calls={usage['model_calls']})"
            )
        if usage["total_tokens"] + tokens > context.max_total_tokens:
            raise LimitReached(
                f"max_total_tokens={context.max_total_tokens} reached "
                f"(total_tokens={usage['total_tokens']}, the next call may need {tokens})"
            )

    def _release(self, reservation: Reservation) -> None:
        self._held -= reservation.tokens
        self._in_flight -= 1
        if not reservation.settled:
            reservation.settle(reservation.tokens, 0)
        self._usage["input_tokens"] += reservation.input_tokens
        self._usage["output_tokens"] += reservation.output_tokens
        spent = reservation.input_tokens + reservation.output_tokens
        self._usage["total_tokens"] += spent
        for bill in _bills.get():
            bill.tokens += spent

    async def _wake(self) -> None:
        async with self._settled:
            self._settled.notify_all()
