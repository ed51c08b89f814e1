"""Many runs over a server that changes its manners in mid-run: `python -m bench.soak` prints what holds and what not.

The server counts by itself what each run has cost. It refuses, recovers, cuts replies off and reports its usage in one
form and then in another, at random; what a model cannot do at all stays as it is.
"""

import asyncio
import gc
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from tenacity import wait_none

from bench.options import MISSED, parser_of
from bench.rows import Row, kept, table
from bench.shifting import Account, ShiftingServer
from reflective_agents.models import faults
from reflective_agents.models.capabilities import ModelCapabilities, capabilities_of, forget_capabilities
from reflective_agents.models.providers import close_models, get_model
from reflective_agents.testing.script import Reply, Request
from tests.strategies import STRATEGIES

RUNS, QUICK, ROUNDS, AT_ONCE = 2_000, 60, 5, 20
STRATEGY = {strategy.name: strategy for strategy in STRATEGIES}
NOBODY = "nobody"
MIX = ("chain_of_thought",) * 7 + ("react", "react", "lats")
LACKS: dict[str, set[str]] = {
    "able": set(),
    "thinks": set(),
    "refuses_n": {"n"},
    "refuses_tools": {"tools", "tool"},
    "refuses_json_schema": {"json_schema"},
}
"""What each model cannot do: options, and ways of structured output."""
PER_RUN, PER_QUICK_RUN = 5.0, 15.0
"""Objects more that each run may leave behind, as caches fill; a result that is kept has 30. The quick form has fewer
runs than the cache of runs holds, which therefore grows with each."""
CALLS_BEYOND = "Calls beyond max_model_calls, by the server's count"
TOKENS_BEYOND = "Tokens beyond max_total_tokens, by the server's count"
CALLS_OFF = "Calls counted otherwise than by the server"
TOKENS_OFF = "Tokens counted otherwise, in runs whose usage was all reported"
TOKENS_MISSED = "Tokens counted too few, in all runs"
STRAY = "Calls that belong to no run"
LEARNED_WRONGLY = "Abilities learned wrongly on the way"
BROKEN = (CALLS_BEYOND, TOKENS_BEYOND, CALLS_OFF, TOKENS_OFF, TOKENS_MISSED, STRAY, LEARNED_WRONGLY)
"""What must be 0."""


@dataclass
class Run:
    """A run, how it has ended, and what it has counted and learned."""

    number: int
    context: Any
    result: dict[str, Any]
    learned: list[dict[str, Any]]

    @property
    def model(self) -> str:
        """The name of its model."""
        return str(self.context.model).removeprefix("openai:")


def script(request: Request) -> Reply | Sequence[Reply]:
    """Reply as the model of the strategy does, which the question names."""
    return STRATEGY[re.findall(r"(\w+)-run ", request.text)[-1]].solving(request)


def run_of(text: str) -> str:
    """Return the run that a request belongs to, which its question names."""
    named: list[str] = re.findall(r"-run (\d+)", text)
    return named[-1] if named else NOBODY


async def run(number: int) -> Run:
    """Run a strategy on a model under limits, all drawn by the run's number. Every other run is streamed."""
    draw = Random(number)
    strategy = STRATEGY[MIX[number % len(MIX)]]
    settings: dict[str, Any] = {"samples": draw.choice((1, 1, 4))} if strategy.name == "chain_of_thought" else {}
    limits = {"max_model_calls": draw.randint(2, 25), "max_total_tokens": draw.randint(2_000, 60_000)}
    model = f"openai:{draw.choice(list(LACKS))}"
    context = strategy.make(model=model, max_answer_tokens=300, **limits, **settings)
    ask = {"messages": [("user", f"Why does reflection help? {strategy.name}-run {number}")]}
    mode = ["values", "custom", *(["messages"] if number % 2 else [])]
    result: dict[str, Any] = {}
    learned = []
    async for kind, data in strategy.graph.astream(ask, context=context, stream_mode=mode):
        if kind == "values":
            result = data
        elif kind == "custom" and data["event"] == "learned":
            learned.append(data)
    return Run(number, context, result, learned)


@dataclass
class Left:
    """What is left behind when no run is under way."""

    objects: int
    tasks: int
    files: int
    pages: int

    @classmethod
    def now(cls) -> "Left":
        """Count it."""
        gc.collect()
        files, pages = len(list(Path("/proc/self/fd").iterdir())), Path("/proc/self/statm").read_text().split()[1]
        return cls(len(gc.get_objects()), len(asyncio.all_tasks()), files, int(pages))


def wrongly_learned(run: Run) -> Iterable[str]:
    """Yield what a run has learned of its model that is not so."""
    for event in run.learned:
        names = {event[name] for name in ("refused", "ignored") if name in event}
        if "context_tokens" in event or not names <= LACKS[run.model]:
            yield f"{run.model}: {event}"


def wrongly_known(name: str) -> Iterable[str]:
    """Yield the abilities of a model that are not known rightly in the end."""
    known: ModelCapabilities = capabilities_of(get_model(f"openai:{name}"))
    abilities = {option: getattr(known, option) for option in ("n", "tools")}
    abilities |= {way: way in known.structured for way in ("json_schema", "tool")}
    for ability, has in abilities.items():
        needed = ability != "tool" or "json_schema" in LACKS[name]  # the second way is not tried without need
        if needed and has == (ability in LACKS[name]):
            yield f"{name}: {ability} is {has}"


def tally(runs: list[Run], accounts: dict[str, Account]) -> Counter[str]:
    """Count how the runs have ended, and compare what they have counted and were allowed with the server's count."""
    sums: Counter[str] = Counter(dict.fromkeys(BROKEN, 0))
    for each in runs:
        used, account = each.result["usage"], accounts[str(each.number)]
        sums["Runs"] += 1
        sums[f"Runs that ended as {each.result['outcome']['status']}"] += 1
        sums["Calls, by the server's count"] += account.calls
        sums["Calls that were streamed"] += account.streamed
        sums["Calls with a fault"] += account.faults
        sums["Calls whose usage was not reported"] += account.unseen
        sums["Tokens, by the server's count"] += account.tokens
        sums[CALLS_BEYOND] += max(account.calls - each.context.max_model_calls, 0)
        sums[TOKENS_BEYOND] += max(account.tokens - each.context.max_total_tokens, 0)
        sums[CALLS_OFF] += abs(account.calls - used["model_calls"])
        sums[TOKENS_OFF] += abs(used["total_tokens"] - account.tokens) if not account.unseen else 0
        sums[TOKENS_MISSED] += max(account.tokens - used["total_tokens"], 0)
        wrong = list(wrongly_learned(each))
        sums[LEARNED_WRONGLY] += len(wrong)
        for text in wrong:
            print(text, file=sys.stderr)
    sums[STRAY] += accounts[NOBODY].calls
    return sums


async def soak(total: int) -> list[Row]:
    """Run so many runs, 20 at once, and judge them."""
    forget_capabilities()
    sums: Counter[str] = Counter()
    left: list[Left] = []
    with ShiftingServer(script, run_of).threaded() as server:
        os.environ.update(OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="test", LANGSMITH_TRACING="false")
        for number in range(ROUNDS):
            part = range(total * number // ROUNDS, total * (number + 1) // ROUNDS)
            sums += await _round(part, server)
            left.append(Left.now())
        unknown = await _known_in_the_end(server, total)
    return [*_counted(sums), Row("Abilities not right in the end", len(unknown), "", 0), *_left(left, total)]


async def _round(numbers: range, server: ShiftingServer) -> Counter[str]:
    """Run the runs of these numbers, and let go of all that belongs to them."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def in_turn(number: int) -> Run:
        async with slots:
            return await run(number)

    sums = tally(await asyncio.gather(*map(in_turn, numbers)), server.accounts)
    await close_models()
    await asyncio.sleep(0.2)  # in which the server closes its ends
    server.forget()
    return sums


async def _known_in_the_end(server: ShiftingServer, number: int) -> list[str]:
    """Ask each model for everything once, without faults, and return what is known of them wrongly then."""
    server.is_calm = True
    context = {"max_answer_tokens": 300, "max_model_calls": 60}
    for name in LACKS:
        ask = {"messages": [("user", f"Why does reflection help? lats-run {number}")]}
        await STRATEGY["lats"].graph.ainvoke(ask, context=STRATEGY["lats"].make(model=f"openai:{name}", **context))
    unknown = [fault for name in LACKS for fault in wrongly_known(name)]
    await close_models()
    return unknown


def _counted(sums: Counter[str]) -> list[Row]:
    return [Row(what, sums[what], "") for what in sorted(sums.keys() - set(BROKEN))] + [
        Row(what, sums[what], "", 0) for what in BROKEN
    ]


def _left(left: list[Left], total: int) -> list[Row]:
    warm, last = left[1], left[-1]
    since = total * (ROUNDS - 2) // ROUNDS
    most = PER_RUN if total >= RUNS else PER_QUICK_RUN
    # What runs leave behind grows in every round; a cache that fills late grows in one.
    growth = median(after.objects - before.objects for before, after in pairwise(left[1:]))
    return [
        Row("Objects more after each run", growth * ROUNDS / total, "", most, digits=2),
        Row("Memory more after each run", (last.pages - warm.pages) * 4 / since, "kB", digits=1),
        Row("Tasks more in the end", last.tasks - warm.tasks, "", 0),
        Row("Connections and files more in the end", last.files - warm.files, "", 0),
    ]


def main() -> int:
    """Run, print, and judge; `MISSED` if anything that is promised does not hold."""
    options = parser_of("bench.soak", __doc__).parse_args()
    faults.WAIT = wait_none()
    rows = asyncio.run(soak(QUICK if options.quick else RUNS))
    print(table(rows))
    return 0 if kept(rows) else MISSED


if __name__ == "__main__":
    sys.exit(main())
