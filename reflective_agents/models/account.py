"""What a caller may spend over all of his runs, in a process that serves others: every call is held against it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

Settle = Callable[[int, int, int], Awaitable[None]]
"""Replaces what is held for a call by what it was: calls (0 if it was not sent), tokens, nano-dollars."""


class Account(Protocol):
    """The account of whoever runs the call, whom it finds out itself."""

    async def hold(self, tokens: int, nano: int | None) -> Settle:
        """Hold one call, whose price is None if nobody knows it.

        Raises:
            LimitReached: if it would exceed what the caller may spend.
            UnknownPrice: if that is a matter of money, and the price is not known.
        """
        ...


_account: Account | None = None


def charge_to(account: Account | None) -> None:
    """Hold, from now on in this process, every call against an account."""
    global _account
    _account = account


class Charge:
    """What a call turns out to cost."""

    def __init__(self) -> None:
        self.calls = self.tokens = self.nano = 0


@asynccontextmanager
async def charged(tokens: int, nano: int | None) -> AsyncIterator[Charge]:
    """Hold a call for the body, which fills in what it has cost; nothing if it was not sent.

    Raises:
        LimitReached: if the account does not cover it.
    """
    settle = await _account.hold(tokens, nano) if _account else None
    charge = Charge()
    try:
        yield charge
    finally:
        if settle:
            await asyncio.shield(settle(charge.calls, charge.tokens, charge.nano))
