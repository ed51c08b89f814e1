"""What a whole evaluation may spend. Every call is held against it before it is sent, and settled after it."""

import asyncio
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from reflective_agents.evals.ledger import UNITS, Ledger
from reflective_agents.evals.results import Result, usages_of
from reflective_agents.models.account import Settle, charge_to
from reflective_agents.state.errors import LimitReached, Misuse, UnknownPrice
from reflective_agents.state.limits import NANO, Limit, sentence

SPENT = "spent.json"
"""The ledger of an evaluation, in its folder."""


@dataclass
class Cut:
    """Whether the budget has cut a task short."""

    short: bool = False


_cut: ContextVar[Cut | None] = ContextVar("cut", default=None)


class Budget:
    """The budget of an evaluation: the most tokens and dollars that all of its tasks may take together.

    Attributes:
        reached: The limit that was met, if one was: nothing more is sent then.
        unreadable: How many lines of the ledger of earlier sessions could not be read.
    """

    def __init__(self, tokens: int | None = None, cost: float | None = None) -> None:
        """Set the budget; None for any amount.

        Raises:
            Misuse: if the cost is no number of dollars.
        """
        if cost is not None and not math.isfinite(cost):
            raise Misuse(f"max_total_cost={cost}: give a number of dollars, or leave it out")
        self._most: dict[str, int | None] = {
            "budget_tokens": tokens,
            "max_total_cost": None if cost is None else int(cost * NANO),
        }
        self._spent: dict[str, int] = dict.fromkeys(UNITS, 0)
        self._held: dict[str, int] = dict.fromkeys(UNITS, 0)
        self._ledger: Ledger | None = None
        self._settled = asyncio.Condition()
        self.reached: Limit | None = None
        self.unreadable = 0

    @contextmanager
    def held(self, folder: Path, results: Iterable[Result]) -> Iterator[None]:
        """Hold every call of the body against the budget, on top of what was spent before."""
        self.record(folder / SPENT)
        try:
            self._begin(results)
            charge_to(self)
            yield
        finally:
            charge_to(None)
            self.close()

    def record(self, file: Path) -> None:
        """Write what is spent from now on into a ledger."""
        self._ledger = Ledger(file)

    def close(self) -> None:
        """Close the ledger."""
        if self._ledger:
            self._ledger.close()
            self._ledger = None

    def _begin(self, results: Iterable[Result]) -> None:
        """Count what earlier sessions of the evaluation have spent, also on tasks that they did not end."""
        assert self._ledger
        usages = list(chain.from_iterable(map(usages_of, results)))
        cost = round(NANO * sum(usage.get("cost", 0.0) for usage in usages))
        reported = {"budget_tokens": sum(usage["total_tokens"] for usage in usages), "max_total_cost": cost}
        written = self._ledger.total()
        self.unreadable = self._ledger.unreadable
        # The ledger also knows tasks that did not end; results know sessions from before there was a ledger.
        self._spent = {name: max(reported[name], written[name]) for name in UNITS}
        self._write({name: self._spent[name] - written[name] for name in UNITS})
        self._check(0, 0)

    def _write(self, amounts: dict[str, int]) -> None:
        if self._ledger and any(amounts.values()):
            self._ledger.add(amounts)

    @contextmanager
    def task(self) -> Iterator[Cut]:
        """Tell whether the budget has cut the body short, and so what came of it does not count."""
        cut = Cut()
        token = _cut.set(cut)
        try:
            yield cut
        finally:
            _cut.reset(token)

    async def hold(self, tokens: int, nano: int | None) -> Settle:
        """Hold one call; it waits where it may still fit once calls in flight are settled.

        Raises:
            LimitReached: if it would exceed the budget.
            UnknownPrice: if there is a budget of money, and nobody knows what the call costs.
        """
        if nano is None and self._most["max_total_cost"] is not None:
            raise UnknownPrice("max_total_cost needs to know what every model costs: give prices for all of them")
        needed: dict[str, int] = {"budget_tokens": tokens, "max_total_cost": nano or 0}
        async with self._settled:
            while self._refused(tokens, nano or 0) or self._is_held_up(needed):
                if self.reached:
                    if cut := _cut.get():
                        cut.short = True
                    raise LimitReached(self.reached)
                await self._settled.wait()
            # On the disk before it is sent: a process that is killed cannot forget it.
            self._write(needed)
            self._add(self._held, needed)

        async def settle(calls: int, tokens: int, nano: int) -> None:
            async with self._settled:
                spent: dict[str, int] = {"budget_tokens": tokens, "max_total_cost": nano}
                self._add(self._held, {name: -amount for name, amount in needed.items()})
                self._add(self._spent, spent)
                self._write({name: spent[name] - needed[name] for name in UNITS})
                self._settled.notify_all()

        return settle

    def add(self, result: Result) -> None:
        """Count what a task has spent in another process."""
        for usage in usages_of(result):
            cost = round(NANO * usage.get("cost", 0.0))
            self._add(self._spent, {"budget_tokens": usage["total_tokens"], "max_total_cost": cost})
        self._check(0, 0)

    def total(self) -> dict[str, int]:
        """Return what is spent, and held for calls under way."""
        return {name: self._spent[name] + self._held[name] for name in UNITS}

    def say(self) -> str:
        """Say which limit was met; nothing if none was."""
        return sentence(self.reached) if self.reached else ""

    def _refused(self, tokens: int, nano: int) -> bool:
        self._check(tokens, nano)
        return self.reached is not None

    def _check(self, tokens: int, nano: int) -> None:
        """Notice that a call does not fit, however those in flight turn out."""
        for name, needed in (("budget_tokens", tokens), ("max_total_cost", nano)):
            most, spent = self._most[name], self._spent[name]
            if most is not None and self.reached is None and spent + max(needed, 1) > most:
                unit = NANO if name == "max_total_cost" else 1
                self.reached = Limit(name=name, most=most / unit, spent=spent / unit, needed=needed / unit)

    def _is_held_up(self, needed: dict[str, int]) -> bool:
        for name, taken in self.total().items():
            most = self._most[name]
            if most is not None and taken + needed[name] > most:
                return True
        return False

    @staticmethod
    def _add(amounts: dict[str, int], more: dict[str, int]) -> None:
        for name, amount in more.items():
            amounts[name] += amount
