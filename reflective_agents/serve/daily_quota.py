"""What each user may spend in a day (UTC), over all of their runs and all processes.

Each call is reserved before it is sent, and settled when its cost is known.

Aegra keeps the accounts in its database, `langgraph dev` in memory. Without keys all users share one account.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import cache
from typing import NamedTuple, Protocol

from reflective_agents.models.account import Settle
from reflective_agents.nodes.users import ANYBODY, authenticated_user
from reflective_agents.serve.engine import IN_AEGRA
from reflective_agents.serve.tables import Table
from reflective_agents.state.errors import LimitReached, UnknownPrice
from reflective_agents.state.limits import NANO, Limit

# Fits into a bigint of Postgres, even after a call was added.
_UNLIMITED = 2**62
_DAYS_KEPT = 40
"""Days after which an account is deleted."""
_TABLE = f"""
CREATE TABLE IF NOT EXISTS reflect_days (
    user_id text, day date, calls bigint NOT NULL, tokens bigint NOT NULL, nano bigint NOT NULL,
    PRIMARY KEY (user_id, day));
DELETE FROM reflect_days WHERE day < current_date - {_DAYS_KEPT}
"""
# One statement, so that no other process can spend between the look at the sum and the addition.
_ADD = """
INSERT INTO reflect_days AS spent VALUES (%(user)s, %(day)s, %(calls)s, %(tokens)s, %(nano)s)
ON CONFLICT (user_id, day) DO UPDATE
SET calls = spent.calls + excluded.calls, tokens = spent.tokens + excluded.tokens, nano = spent.nano + excluded.nano
WHERE spent.calls + excluded.calls <= %(most_calls)s AND spent.tokens + excluded.tokens <= %(most_tokens)s
    AND spent.nano + excluded.nano <= %(most_nano)s
RETURNING calls
"""
_SPENT = "SELECT calls, tokens, nano FROM reflect_days WHERE user_id = %(user)s AND day = %(day)s"


class Spent(NamedTuple):
    """An amount that was spent, or may be: requests to models, tokens, and nano-dollars."""

    calls: int = 0
    tokens: int = 0
    nano: int = 0

    def plus(self, more: "Spent") -> "Spent":
        """Return the sum of both."""
        return Spent(self.calls + more.calls, self.tokens + more.tokens, self.nano + more.nano)

    def within(self, most: "Spent") -> bool:
        """Tell whether nothing exceeds the most there may be."""
        return self.calls <= most.calls and self.tokens <= most.tokens and self.nano <= most.nano


UNLIMITED = Spent(_UNLIMITED, _UNLIMITED, _UNLIMITED)


class Ledger(Protocol):
    """What users have spent on each day."""

    async def add(self, user: str, day: date, amount: Spent, most: Spent = UNLIMITED) -> bool:
        """Add an amount, unless the sum would exceed `most`; tell whether it was added."""
        ...

    async def spent(self, user: str, day: date) -> Spent:
        """Return what a user has spent, and what is held for calls under way."""
        ...


class MemoryLedger:
    """The ledger of one process."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, date], Spent] = {}

    async def add(self, user: str, day: date, amount: Spent, most: Spent = UNLIMITED) -> bool:
        """Add an amount."""
        # Nothing here gives the event loop away, so no other call comes between this look and the change.
        total = (await self.spent(user, day)).plus(amount)
        if total.within(most):
            self._days[user, day] = total
        return total.within(most)

    async def spent(self, user: str, day: date) -> Spent:
        """Return the sum."""
        return self._days.get((user, day), Spent())


class PostgresLedger:
    """The ledger of all processes of Aegra."""

    def __init__(self) -> None:
        self._table = Table(_TABLE)

    async def add(self, user: str, day: date, amount: Spent, most: Spent = UNLIMITED) -> bool:
        """Add an amount."""
        bounds = {f"most_{name}": value for name, value in most._asdict().items()}
        return bool(await self._table.rows(_ADD, {"user": user, "day": day, **amount._asdict(), **bounds}))

    async def spent(self, user: str, day: date) -> Spent:
        """Return the row."""
        rows = await self._table.rows(_SPENT, {"user": user, "day": day})
        return Spent(**rows[0]) if rows else Spent()


class DailyQuota:
    """The account of each user: at most so much a day.

    Args:
        most: Amounts by the names of a run's limits: `max_model_calls`, `max_total_tokens`, `max_cost` (US dollars).
        ledger: Where the accounts are kept; that of this server by default.
    """

    def __init__(self, most: Mapping[str, float], ledger: Ledger | None = None) -> None:
        calls, tokens, cost = (most.get(name) for name in ("max_model_calls", "max_total_tokens", "max_cost"))
        self.most = Spent(
            _UNLIMITED if calls is None else int(calls),
            _UNLIMITED if tokens is None else int(tokens),
            _UNLIMITED if cost is None else int(cost * NANO),
        )
        self._ledger = ledger or server_ledger()

    async def hold(self, tokens: int, nano: int | None) -> Settle:
        """Reserve a call for the user whose run makes it.

        Raises:
            LimitReached: if the call would exceed what the user may spend today.
            UnknownPrice: if there is a limit of money, and nobody knows what the call costs.
        """
        if nano is None and self.most.nano < _UNLIMITED:
            raise UnknownPrice("max_cost of a day needs to know what every model costs: give prices for all of them")
        nano = nano or 0
        user, day, held = authenticated_user() or ANYBODY, _today(), Spent(1, tokens, nano)
        if not held.within(self.most) or not await self._ledger.add(user, day, held, self.most):
            raise LimitReached(
                self._reached(await self._ledger.spent(user, day), held), "of all runs of this day (UTC)"
            )

        async def settle(calls: int, spent_tokens: int, spent_nano: int) -> None:
            # The difference, on the day that it was held for, without a limit: what was spent is spent.
            await self._ledger.add(user, day, Spent(calls - 1, spent_tokens - tokens, spent_nano - nano))

        return settle

    async def used_up(self, user: str) -> Limit | None:
        """Return the limit of today's that leaves a user no further call; None if there is none."""
        spent = await self._ledger.spent(user, _today())
        return None if spent.plus(Spent(1, 1, 0)).within(self.most) else self._reached(spent, Spent(1, 1, 0))

    def _reached(self, spent: Spent, held: Spent) -> Limit:
        total, most = spent.plus(held), self.most
        if total.calls > most.calls:
            return Limit(name="max_model_calls_a_day", most=most.calls, spent=spent.calls)
        if total.tokens > most.tokens:
            return Limit(name="max_total_tokens_a_day", most=most.tokens, spent=spent.tokens, needed=held.tokens)
        return Limit(name="max_cost_a_day", most=most.nano / NANO, spent=spent.nano / NANO, needed=held.nano / NANO)


@cache
def server_ledger() -> Ledger:
    """Return the ledger of this server."""
    return PostgresLedger() if IN_AEGRA else MemoryLedger()


def _today() -> date:
    return datetime.now(UTC).date()
