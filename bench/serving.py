"""Measures `make serve` under load: `.venv/bin/python -m bench.serving`, after `make .venv-serve/stamp`.

So many chat completions are asked for at the same moment, of one or two processes that share a Postgres and a Redis.
Each call of a model takes half a second. The calls that runs report are compared with those that its server saw, and
what is answered with what the model's server answers alone. The processor's time is that of the server's processes.
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

from bench.options import parser_of
from bench.wire import Server, serving
from reflective_agents.serve.local import postgres, redis

LATENCY = 0.5
ALONE, ONE_CALL = "model server", "chain_of_thought"
ASKED = [{"role": "user", "content": "Which even number above two is not the sum of two primes?"}]
HEAD = """| | strategy | at once | answered | p50 | p95 | refused | calls (seen besides) | share | processor a run |
|---|---|---|---|---|---|---|---|---|---|"""
BODIES: dict[str, dict[str, Any]] = {
    "chain_of_thought": {"model": "chain_of_thought"},
    "lats": {"model": "lats", "settings": {"search": "none", "n": 2, "max_expansions": 4}},
}
_TICKS = os.sysconf("SC_CLK_TCK")
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


class Site(NamedTuple):
    """Addresses of `/v1`, and the ids of the processes behind them."""

    addresses: Sequence[str]
    processes: Sequence[int] = ()

    def processor(self) -> float:
        """Return the seconds of a processor that the processes have had."""
        ticks = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in self.processes]
        return sum(int(user) + int(system) for *_, user, system in (found[:13] for found in ticks)) / _TICKS


async def load(addresses: Sequence[str], body: dict[str, Any], at_once: int) -> tuple[Load, int]:
    """Ask at once, in turn at each address; return the seconds and the calls that the answers report."""

    async def ask(number: int) -> tuple[float, int] | None:
        begun = time.perf_counter()
        answer = await client.post(f"{addresses[number % len(addresses)]}/chat/completions", json=body)
        if answer.is_error:
            return None
        return time.perf_counter() - begun, answer.json()["usage"].get("model_calls", 1)

    limits = httpx.Limits(max_connections=None)
    headers = {"authorization": "Bearer test"}
    async with httpx.AsyncClient(timeout=PATIENCE, limits=limits, headers=headers) as client:
        begun = time.perf_counter()
        asked = await asyncio.gather(*map(ask, range(at_once)))
    answered = [one for one in asked if one]
    seconds = [seconds for seconds, _ in answered]
    return Load(time.perf_counter() - begun, seconds, at_once - len(answered)), sum(calls for _, calls in answered)


@contextmanager
def processes(number: int, python: str) -> Iterator[Site]:
    """Start processes of the server, and yield where they are."""
    with ExitStack() as stack:
        started = [stack.enter_context(_process(python)) for _ in range(number)]
        yield Site([f"{address}/v1" for address, _ in started], [process for _, process in started])


@contextmanager
def _process(python: str) -> Iterator[tuple[str, int]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "reflective_agents.serve", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
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
    what: str, site: Site, server: Server, strategies: Sequence[str], loads: Sequence[int], alone: dict[int, float]
) -> None:
    """Print a row of each load; `alone` is what the model's server answers a minute, by the requests at once."""
    for strategy in strategies:
        body = BODIES[strategy] | {"messages": ASKED}
        if what == ALONE:
            body = {"model": "test", "messages": ASKED}
        asyncio.run(load(site.addresses, body, 2 * len(site.addresses)))  # all have loaded everything
        for number in loads:
            before, processor = server.counters().calls, site.processor()
            found, calls = asyncio.run(load(site.addresses, body, number))
            lost, spent = server.counters().calls - before - calls, (site.processor() - processor) * 1000 / number
            alone.setdefault(number, found.a_minute)
            share = f"{found.a_minute / alone[number]:.3f}" if strategy == ONE_CALL else ""
            cost = f"{spent:.0f} ms" if site.processes else ""
            print(f"| {what} | {strategy} | {number} | {found} | {calls} ({lost:+}) | {share} | {cost} |", flush=True)
        if what == ALONE:
            return


def main() -> None:
    """Measure the model's server alone, one process and two."""
    parser = parser_of("bench.serving", __doc__)
    parser.add_argument("--python", default=".venv-serve/bin/python", help="the Python that Aegra is installed in")
    parser.add_argument("--at-once", type=int, nargs="+", default=[20, 100, 200])
    options = parser.parse_args()
    strategies, loads, most = list(BODIES), options.at_once, 2
    if options.quick:
        strategies, loads, most = strategies[:1], [2], 1
    with TemporaryDirectory() as folder, serving(LATENCY) as server, ExitStack() as stack:
        os.environ |= {"REFLECT_SERVE_DIR": folder, "MODEL": "openai:test", "XDG_RUNTIME_DIR": folder}
        os.environ |= {"DATABASE_URL": stack.enter_context(postgres()), "REDIS_URL": stack.enter_context(redis())}
        print(
            "| | strategy | at once | answered | p50 | p95 | refused | calls (seen besides) | share | processor a run |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
        alone = dict[int, float]()
        measure(ALONE, Site([os.environ["OPENAI_BASE_URL"]]), server, strategies, loads, alone)
        for number in range(1, most + 1):
            with processes(number, options.python) as site:
                measure(f"{number} process{'es' if number > 1 else ''}", site, server, strategies, loads, alone)


if __name__ == "__main__":
    main()
