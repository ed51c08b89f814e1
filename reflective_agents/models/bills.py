"""What calls have cost: each while it is under way, and all that one part of a run has made."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

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


def charge_bills(calls: int, tokens: int = 0) -> None:
    """Add to what each of the parts has spent within which this is called."""
    for bill in _bills.get():
        bill.calls += calls
        bill.tokens += tokens


class Reservation:
    """One call under way: `tokens` and `nano` dollars are held for it until `settle` says what it cost."""

    def __init__(self, tokens: int, nano: int | None) -> None:
        self.tokens, self.nano = tokens, nano
        self.input_tokens = 0
        self.output_tokens = 0
        self.paid = 0
        self.settled = False
        self.calls = 1

    def settle(self, input_tokens: int, output_tokens: int, paid: int = 0) -> None:
        """Replace the reservation by what the call has cost. A server's word below 0 is not taken."""
        self.input_tokens = max(input_tokens, 0)
        self.output_tokens = max(output_tokens, 0)
        self.paid = max(paid, 0)
        self.settled = True

    def cancel(self) -> None:
        """Settle a call that was never sent: a cache has answered."""
        self.settle(0, 0)
        self.calls = 0
