"""Measures `make serve` under load: `.venv/bin/python -m bench.serving`, after `make .venv-serve/stamp`.

So many chat completions are under way at a time, of one or two processes that share a Postgres and a Redis; at least
twenty are asked for. Each call of a model takes half a second. The calls that runs report are compared with those that
its server saw, and what is answered in a minute with what the model's server answers alone.

The processor's time is that of the server's processes, user and system, until the last thread was deleted; that of
Postgres, Redis, the model's server and the clients is not in it. Transactions and changed rows are those that Postgres
counts in the server's database, the few of an idle server included.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx
import psycopg

from bench.options import parser_of
from bench.wire import Server, serving
from reflective_agents.serve.local import postgres, redis

LATENCY = 0.5
ALONE, ONE_CALL = "model server", "chain_of_thought"
ASKED = [{"role": "user", "content": "Which even number above two is not the sum of two primes?"}]
FEWEST = 20
"""Completions of a measurement at least."""
SETTLED = 1.0
"""Seconds after which a server has cleaned up behind the last answer."""
COUNTED = 11.0
"""Seconds after which all connections of Postgres have reported what they did."""
COLUMNS = (
    "",
    "strategy",
    "at once",
    "answered",
    "p50",
    "p95",
    "refused",
    "calls (seen besides)",
    "share",
    "processor a run",
    "transactions",
    "rows changed",
    "log lines",
)
GOALS = "goal", "chain_of_thought", "", "", "", "≤ 15 s at 200", "0", "", "≥ 0.08", "≤ 100 ms", "", "", "≤ 5"
BODIES: dict[str, dict[str, Any]] = {
    "chain_of_thought": {"model": "chain_of_thought"},
    "lats": {"model": "lats", "settings": {"search": "none", "n": 2, "max_expansions": 4}},
}
_TICKS = os.sysconf("SC_CLK_TCK")
_COUNT = """
SELECT xact_commit + xact_rollback, tup_inserted + tup_updated + tup_deleted FROM pg_stat_database
WHERE datname = current_database()
"""
PATIENCE = httpx.Timeout(1_200)


class Load(NamedTuple):
    """The seconds of all requests together, those of each that was answered, and how many were refused."""

    whole: float
    each: Sequence[float]
    refused: int

    @property
    def a_minute(self) -> float:
        """How many were answered in a minute."""
        return 60 * len(self.each) / self.whole

    def __str__(self) -> str:
        cuts = statistics.quantiles(self.each, n=20)
        return f"{self.a_minute:,.0f} a minute | {cuts[9]:.1f} s | {cuts[18]:.1f} s | {self.refused}"


class Spent(NamedTuple):
    """What servers have used: seconds of a processor, transactions, rows that were changed, lines of their logs."""

    processor: float
    transactions: int
    rows: int
    lines: int

    def a_run(self, before: "Spent", runs: int) -> tuple[str, ...]:
        """Return what each of so many runs has used since a moment."""
        processor, *counts = ((now - then) / runs for now, then in zip(self, before, strict=True))
        return f"{processor * 1000:.0f} ms", *(f"{count:.0f}" for count in counts)


class Site(NamedTuple):
    """Addresses of `/v1`, the ids of the processes behind them, and their logs."""

    addresses: Sequence[str]
    processes: Sequence[int] = ()
    logs: Sequence[Path] = ()

    def spent(self, counted: float) -> Spent:
        """Return what the processes have used until now.

        Args:
            counted: Seconds to wait for what Postgres counts.
        """
        processor, lines = self.processor(), sum(log.read_bytes().count(b"\n") for log in self.logs)
        time.sleep(counted)
        with psycopg.connect(os.environ["DATABASE_URL"]) as database:
            transactions, rows = database.execute(_COUNT).fetchone() or (0, 0)
        return Spent(processor, transactions, rows, lines)

    def processor(self) -> float:
        """Return the seconds of a processor that the processes have had."""
        ticks = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in self.processes]
        return sum(int(user) + int(system) for *_, user, system in (found[:13] for found in ticks)) / _TICKS


async def load(addresses: Sequence[str], body: dict[str, Any], at_once: int, total: int) -> tuple[Load, int]:
    """Keep so many requests under way, in turn at each address; return the seconds and the calls that answers report.

    Args:
        addresses: Those of `/v1`.
        body: The request.
        at_once: How many are under way at a time, 1 or more.
        total: How many there are, at least `at_once`.
    """
    waiting = iter(range(total))

    async def ask(number: int) -> tuple[float, int] | None:
        begun = time.perf_counter()
        answer = await client.post(f"{addresses[number % len(addresses)]}/chat/completions", json=body)
        if answer.is_error:
            return None
        return time.perf_counter() - begun, answer.json()["usage"].get("model_calls", 1)

    async def ask_in_turn() -> list[tuple[float, int] | None]:
        return [await ask(number) for number in waiting]

    limits = httpx.Limits(max_connections=None)
    headers = {"authorization": "Bearer test"}
    async with httpx.AsyncClient(timeout=PATIENCE, limits=limits, headers=headers) as client:
        begun = time.perf_counter()
        found_by_worker = await asyncio.gather(*(ask_in_turn() for _ in range(at_once)))
        whole = time.perf_counter() - begun
    answered = [found for worker in found_by_worker for found in worker if found]
    seconds = [seconds for seconds, _ in answered]
    return Load(whole, seconds, total - len(answered)), sum(calls for _, calls in answered)


@contextmanager
def processes(number: int, python: str) -> Iterator[Site]:
    """Start processes of the server, and yield where they are."""
    with ExitStack() as stack:
        logs = [Path(os.environ["REFLECT_SERVE_DIR"]) / f"server {index} of {number}.log" for index in range(number)]
        started = [stack.enter_context(_process(python, log)) for log in logs]
        yield Site([f"{address}/v1" for address, _ in started], [process for _, process in started], logs)


@contextmanager
def _process(python: str, log: Path) -> Iterator[tuple[str, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "reflective_agents.serve", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        _wait(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(60)


def _wait(address: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            if httpx.get(f"{address}/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    sys.exit("the server does not start: make serve says why")


def measure(
    what: str,
    site: Site,
    server: Server,
    strategies: Sequence[str],
    loads: Sequence[int],
    alone: dict[int, float],
    counted: float,
) -> None:
    """Print a row of each load.

    Args:
        what: What is measured.
        site: Where it is.
        server: The model's server.
        strategies: The strategies that answer.
        loads: How many requests are under way at a time, in turn.
        alone: What the model's server answers a minute, by the requests at once; it is added where it is missing.
        counted: Seconds to wait for what Postgres counts; 0 to see only whether all works.
    """
    for strategy in strategies:
        body = BODIES[strategy] | {"messages": ASKED}
        if what == ALONE:
            body = {"model": "test", "messages": ASKED}
        warm = 2 * len(site.addresses)
        asyncio.run(load(site.addresses, body, warm, warm))  # all have loaded everything
        for number in loads:
            total, before = max(number, FEWEST if counted else 2), server.counters().calls
            spent = site.spent(counted)._replace(processor=site.processor()) if site.processes else None
            found, calls = asyncio.run(load(site.addresses, body, number, total))
            lost = server.counters().calls - before - calls
            alone.setdefault(number, found.a_minute)
            share = f"{found.a_minute / alone[number]:.3f}" if strategy == ONE_CALL else ""
            a_run: tuple[str, ...] = ("",) * 4
            if spent:
                time.sleep(SETTLED)
                a_run = site.spent(counted).a_run(spent, total)
            print_row(what, strategy, number, found, f"{calls} ({lost:+})", share, *a_run)
        if what == ALONE:
            return


def print_row(*cells: object) -> None:
    """Print a row of the table."""
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main() -> None:
    """Measure the model's server alone, one process and two."""
    parser = parser_of("bench.serving", __doc__)
    parser.add_argument("--python", default=".venv-serve/bin/python", help="the Python that Aegra is installed in")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 20, 200])
    parser.add_argument("--strategies", nargs="+", choices=BODIES, default=[*BODIES])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="servers beside each other")
    options = parser.parse_args()
    strategies, loads, numbers, counted = options.strategies, options.at_once, options.processes, COUNTED
    if options.quick:
        strategies, loads, numbers, counted = [ONE_CALL], [2], [1], 0.0
    with TemporaryDirectory() as folder, serving(LATENCY) as server, ExitStack() as stack:
        os.environ |= {"REFLECT_SERVE_DIR": folder, "MODEL": "openai:test", "XDG_RUNTIME_DIR": folder}
        os.environ |= {"DATABASE_URL": stack.enter_context(postgres()), "REDIS_URL": stack.enter_context(redis())}
        print_row(*COLUMNS)
        print(f"|{'---|' * len(COLUMNS)}", flush=True)
        print_row(*GOALS)
        alone = dict[int, float]()
        measure(ALONE, Site([os.environ["OPENAI_BASE_URL"]]), server, strategies, loads, alone, counted)
        for number in numbers:
            with processes(number, options.python) as site:
                measure(
                    f"{number} process{'es' if number > 1 else ''}", site, server, strategies, loads, alone, counted
                )


if __name__ == "__main__":
    main()
