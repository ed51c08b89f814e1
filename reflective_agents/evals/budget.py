"""What a whole evaluation may spend. Every call is held against it before it is sent, and settled after it."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from reflective_agents.evals.results import Result
from reflective_agents.models.account import Settle, charge_to
from reflective_agents.state.errors import LimitReached
from reflective_agents.state.limits import NANO, Limit, sentence

SPENT = "spent.json"


@dataclass
class Cut:
    """Whether the budget has cut a task short."""

    short: bool = False


_cut: ContextVar[Cut | None] = ContextVar("cut", default=None)


class Budget:
    """The budget of an evaluation: the most tokens and dollars that all of its tasks may take together.

    Attributes:
        reached: The limit that was met, if one was: nothing more is sent then.
    """

    def __init__(self, tokens: int | None = None, cost: float | None = None) -> None:
        self._most = {
            "budget_tokens": tokens,
            "max_total_cost": None if cost is None else int(cost * NANO),
        }
        self._spent = dict.fromkeys(self._most, 0)
        self._held = dict.fromkeys(self._most, 0)
        self._settled = asyncio.Condition()
        self.reached: Limit | None = None

    @contextmanager
    def held(self, folder: Path, results: Iterable[Result]) -> Iterator[None]:
        """Hold every call of the body against the budget, on top of what was spent before."""
        self._begin(folder, results)
        charge_to(self)
        try:
            yield
        finally:
            charge_to(None)
            (folder / SPENT).write_text(json.dumps(self._spent), "utf-8")

    def _begin(self, folder: Path, results: Iterable[Result]) -> None:
        """Count what earlier, interrupted runs of the evaluation have spent, also on tasks that they did not end."""
        usages = [result["usage"] for result in results if result["usage"]]
        known = {"budget_tokens": sum(usage["total_tokens"] for usage in usages)}
        known["max_total_cost"] = round(NANO * sum(usage.get("cost", 0.0) for usage in usages))
        kept = json.loads((folder / SPENT).read_text("utf-8")) if (folder / SPENT).exists() else {}
        self._spent = {name: max(amount, int(kept.get(name, 0))) for name, amount in known.items()}
        self._check(0, 0)

    @contextmanager
    def task(self) -> Iterator[Cut]:
        """Tell whether the budget has cut the body short, and so what came of it does not count."""
        cut = Cut()
        token = _cut.set(cut)
        try:
            yield cut
        finally:
            _cut.reset(token)

    async def hold(self, tokens: int, nano: int) -> Settle:
        """Hold one call; it waits where it may still fit once calls in flight are settled.

        Raises:
            LimitReached: if it would exceed the budget.
        """
        needed = {"budget_tokens": tokens, "max_total_cost": nano}
        async with self._settled:
            while self._refused(tokens, nano) or self._is_held_up(needed):
                if self.reached:
                    if cut := _cut.get():
                        cut.short = True
                    raise LimitReached(self.reached)
                await self._settled.wait()
            self._add(self._held, needed)

        async def settle(calls: int, tokens: int, nano: int) -> None:
            async with self._settled:
                self._add(self._held, {name: -amount for name, amount in needed.items()})
                self._add(self._spent, {"budget_tokens": tokens, "max_total_cost": nano})
                self._settled.notify_all()

        return settle

    def add(self, result: Result) -> None:
        """Count what a task has spent in another process."""
        if usage := result["usage"]:
            cost = round(NANO * usage.get("cost", 0.0))
            self._add(self._spent, {"budget_tokens": usage["total_tokens"], "max_total_cost": cost})
        self._check(0, 0)

    def say(self) -> str:
        """Say which limit was met; nothing if none was."""
        return sentence(self.reached) if self.reached else ""

    def _refused(self, tokens: int, nano: int) -> bool:
        self._check(tokens, nano)
        return self.reached is not None

    def _check(self, tokens: int, nano: int) -> None:
        """Notice that a call does not fit, however those in flight turn out."""
        for name, needed in (("budget_tokens", tokens), ("max_total_cost", nano)):
            most, spent, unit = self._most[name], self._spent[name], NANO if name.endswith("cost") else 1
            if most is not None and self.reached is None and spent + max(needed, 1) > most:
                self.reached = Limit(name=name, most=most / unit, spent=spent / unit, needed=needed / unit)

    def _is_held_up(self, needed: dict[str, int]) -> bool:
        return any(
            most is not None and self._spent[name] + self._held[name] + needed[name] > most
            for name, most in self._most.items()
        )

    @staticmethod
    def _add(amounts: dict[str, int], more: dict[str, int]) -> None:
        for name, amount in more.items():
            amounts[name] += amount
