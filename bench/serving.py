"""Measures `make serve` under load: `.venv/bin/python -m bench.serving`, after `make .venv-serve/stamp`.

So many chat completions are asked for at the same moment, of one or two processes that share a Postgres and a Redis.
Each call of a model takes half a second. The calls that runs report are compared with those that its server saw.
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
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx

from bench.options import parser_of
from bench.wire import Server, serving
from reflective_agents.serve.local import postgres, redis

LATENCY = 0.5
ASKED = [{"role": "user", "content": "Which even number above two is not the sum of two primes?"}]
BODIES: dict[str, dict[str, Any]] = {
    "chain_of_thought": {"model": "chain_of_thought"},
    "lats": {"model": "lats", "settings": {"search": "none", "n": 2, "max_expansions": 4}},
}
PATIENCE = httpx.Timeout(1_200)


class Load(NamedTuple):
    """The seconds of all requests together, those of each that was answered, and how many were refused."""

    whole: float
    each: Sequence[float]
    refused: int

    def __str__(self) -> str:
        cuts = statistics.quantiles(self.each, n=20)
        a_minute = 60 * len(self.each) / self.whole
        return f"{a_minute:,.0f} a minute | {cuts[9]:.1f} s | {cuts[18]:.1f} s | {self.refused}"


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
def processes(number: int, python: str) -> Iterator[list[str]]:
    """Start processes of the server, and yield the addresses of their `/v1`."""
    with ExitStack() as stack:
        started = [stack.enter_context(_process(python)) for _ in range(number)]
        yield [f"{address}/v1" for address in started]


@contextmanager
def _process(python: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [python, "-m", "reflective_agents.serve", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait(f"http://127.0.0.1:{port}", process)
        yield f"http://127.0.0.1:{port}"
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
    what: str, addresses: Sequence[str], server: Server, strategies: Sequence[str], loads: Sequence[int]
) -> None:
    """Print a row of each load."""
    for strategy in strategies:
        body = BODIES[strategy] | {"messages": ASKED}
        if what == "model server":
            body = {"model": "test", "messages": ASKED}
        asyncio.run(load(addresses, body, 2 * len(addresses)))  # all have loaded everything
        for number in loads:
            before = server.counters().calls
            seconds, calls = asyncio.run(load(addresses, body, number))
            lost = server.counters().calls - before - calls
            print(f"| {what} | {strategy} | {number} | {seconds} | {calls} ({lost:+}) |", flush=True)
        if what == "model server":
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
        print("| | strategy | at once | answered | p50 | p95 | refused | calls reported (seen besides) |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        measure("model server", [os.environ["OPENAI_BASE_URL"]], server, strategies, loads)
        for number in range(1, most + 1):
            with processes(number, options.python) as addresses:
                measure(f"{number} process{'es' if number > 1 else ''}", addresses, server, strategies, loads)


if __name__ == "__main__":
    main()
