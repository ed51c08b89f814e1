"""What each user may spend in a day (UTC), over all of his runs and all processes: each call is held before it is sent.

Aegra keeps the account in its database, `langgraph dev` in memory. Without keys everybody has one account together.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import cache
from typing import NamedTuple, Protocol

from reflective_agents.models.account import Settle
from reflective_agents.nodes.remembering.remember import ANYBODY, authenticated_user
from reflective_agents.serve.engine import IN_AEGRA
from reflective_agents.state.errors import LimitReached, UnknownPrice
from reflective_agents.state.limits import NANO, Limit

_NO_END = 2**62
_KEPT = 40
"""DailyQuota that accounts are kept."""
_TABLE = f"""
SELECT pg_advisory_xact_lock(81920731);
CREATE TABLE IF NOT EXISTS reflect_days (
    user_id text, day date, calls bigint NOT NULL, tokens bigint NOT NULL, nano bigint NOT NULL,
    PRIMARY KEY (user_id, day));
DELETE FROM reflect_days WHERE day < current_date - {_KEPT}
"""
_ADD = """
INSERT INTO reflect_days AS kept VALUES (%(user)s, %(day)s, %(calls)s, %(tokens)s, %(nano)s)
ON CONFLICT (user_id, day) DO UPDATE
SET calls = kept.calls + excluded.calls, tokens = kept.tokens + excluded.tokens, nano = kept.nano + excluded.nano
WHERE kept.calls + excluded.calls <= %(most_calls)s AND kept.tokens + excluded.tokens <= %(most_tokens)s
    AND kept.nano + excluded.nano <= %(most_nano)s
RETURNING calls
"""
_SPENT = "SELECT calls, tokens, nano FROM reflect_days WHERE user_id = %(user)s AND day = %(day)s"


class Spent(NamedTuple):
    """What was spent, or may be: requests to models, tokens, and nano-dollars."""

    calls: int = 0
    tokens: int = 0
    nano: int = 0

    def plus(self, more: "Spent") -> "Spent":
        """Return both together."""
        return Spent(self.calls + more.calls, self.tokens + more.tokens, self.nano + more.nano)

    def within(self, most: "Spent") -> bool:
        """Tell whether nothing exceeds the most there may be."""
        return self.calls <= most.calls and self.tokens <= most.tokens and self.nano <= most.nano


NO_END = Spent(_NO_END, _NO_END, _NO_END)


class Book(Protocol):
    """Keeps what users have spent on each day."""

    async def add(self, user: str, day: date, amount: Spent, most: Spent = NO_END) -> bool:
        """Add an amount unless that exceeds the most; False if it does."""
        ...

    async def spent(self, user: str, day: date) -> Spent:
        """Return what a user has spent, and what is held for calls under way."""
        ...


class InMemory:
    """The book of one process."""

    def __init__(self) -> None:
        self._days: dict[tuple[str, date], Spent] = {}

    async def add(self, user: str, day: date, amount: Spent, most: Spent = NO_END) -> bool:
        """Add an amount."""
        total = (await self.spent(user, day)).plus(amount)
        if total.within(most):
            self._days[user, day] = total
        return total.within(most)

    async def spent(self, user: str, day: date) -> Spent:
        """Return the sum."""
        return self._days.get((user, day), Spent())


class InPostgres:
    """The book of all processes of Aegra."""

    def __init__(self) -> None:
        self._ready = False

    async def add(self, user: str, day: date, amount: Spent, most: Spent = NO_END) -> bool:
        """Add an amount."""
        bounds = {f"most_{name}": value for name, value in most._asdict().items()}
        row = await self._run(_ADD, {"user": user, "day": day, **amount._asdict(), **bounds})
        return row is not None

    async def spent(self, user: str, day: date) -> Spent:
        """Return the row."""
        row = await self._run(_SPENT, {"user": user, "day": day})
        return Spent(row["calls"], row["tokens"], row["nano"]) if row else Spent()

    async def _run(self, statement: str, values: Mapping[str, str | date | int]) -> dict[str, int] | None:
        from aegra_api.core.database import db_manager

        async with db_manager.lg_pool.connection() as connection:
            if not self._ready:
                async with connection.transaction():
                    for part in _TABLE.split(";"):
                        await connection.execute(part)
                self._ready = True
            row: dict[str, int] | None = await (await connection.execute(statement, values)).fetchone()
            return row


class DailyQuota:
    """The account of each user: at most so much a day.

    Args:
        most: By the names of the limits of a run: `max_model_calls`, `max_total_tokens`, `max_cost` (US dollars).
        book: Where it is kept.
    """

    def __init__(self, most: Mapping[str, float], book: Book | None = None) -> None:
        calls, tokens, cost = (most.get(name) for name in ("max_model_calls", "max_total_tokens", "max_cost"))
        self.most = Spent(
            _NO_END if calls is None else int(calls),
            _NO_END if tokens is None else int(tokens),
            _NO_END if cost is None else int(cost * NANO),
        )
        self._book = book or common_book()

    async def hold(self, tokens: int, nano: int | None) -> Settle:
        """Hold a call for whoever runs it.

        Raises:
            LimitReached: if it would exceed what they may spend today.
            UnknownPrice: if there is a limit of money, and nobody knows what the call costs.
        """
        if nano is None and self.most.nano < _NO_END:
            raise UnknownPrice("max_cost of a day needs to know what every model costs: give prices for all of them")
        nano = nano or 0
        user, day, held = authenticated_user() or ANYBODY, _today(), Spent(1, tokens, nano)
        if not held.within(self.most) or not await self._book.add(user, day, held, self.most):
            raise LimitReached(self._reached(await self._book.spent(user, day), held), "of all runs of this day (UTC)")

        async def settle(calls: int, spent_tokens: int, spent_nano: int) -> None:
            await self._book.add(user, day, Spent(calls - 1, spent_tokens - tokens, spent_nano - nano))

        return settle

    async def used_up(self, user: str) -> Limit | None:
        """Return the limit of today's that leaves a user no further call; None if there is none."""
        spent = await self._book.spent(user, _today())
        return None if spent.plus(Spent(1, 1, 0)).within(self.most) else self._reached(spent, Spent(1, 1, 0))

    def _reached(self, spent: Spent, held: Spent) -> Limit:
        total, most = spent.plus(held), self.most
        if total.calls > most.calls:
            return Limit(name="max_model_calls_a_day", most=most.calls, spent=spent.calls)
        if total.tokens > most.tokens:
            return Limit(name="max_total_tokens_a_day", most=most.tokens, spent=spent.tokens, needed=held.tokens)
        return Limit(name="max_cost_a_day", most=most.nano / NANO, spent=spent.nano / NANO, needed=held.nano / NANO)


@cache
def common_book() -> Book:
    """Return the book of this server."""
    return InPostgres() if IN_AEGRA else InMemory()


def _today() -> date:
    return datetime.now(UTC).date()
