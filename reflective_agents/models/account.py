"""What a caller may spend over all of their runs, in a process that serves others: every call is held against it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
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
_is_held: ContextVar[bool] = ContextVar("is_held", default=False)


def charge_to(account: Account | None) -> None:
    """Hold, from now on in this process, every call against an account."""
    global _account
    _account = account


def needs_charge() -> bool:
    """Tell whether there is an account that does not hold the call under way already."""
    # A strategy within an agent of the user's holds its own calls, and the agent's `Watch` is told of the same ones.
    return _account is not None and not _is_held.get()


async def uncharged(calls: int, tokens: int, nano: int) -> None:
    """Settle a call that no account holds."""


async def hold(tokens: int, nano: int | None) -> Settle:
    """Hold a call, as `Account.hold`; without an account nothing is held."""
    return await _account.hold(tokens, nano) if _account else uncharged


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
    settle = await hold(tokens, nano)
    charge = Charge()
    token = _is_held.set(True)
    try:
        yield charge
    finally:
        _is_held.reset(token)
        # A run that is cancelled here would keep from its caller what it holds for ever.
        await asyncio.shield(settle(charge.calls, charge.tokens, charge.nano))
