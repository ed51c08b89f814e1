"""Looks for leaks of `make serve` under mixed traffic: `python -m bench.mixed --minutes 30`.

Clients ask for chat completions, responses and messages, streamed or not, stored, in the background, cancelled; they
call tools of MCP, use threads of LangGraph's API, and some leave in the middle. After each round they rest until all
runs have ended, and a row shows what the server's process holds then. It ends with an error if something was answered
wrongly, or if what is held has grown between the second and the last third of the rounds.
"""

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from http import HTTPStatus
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import psutil
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from prometheus_client.parser import text_string_to_metric_families

from bench.options import MISSED, parser_of
from bench.wire import serving
from reflective_agents.serve.local import postgres, redis
from tests.aegra.process import Server

LATENCY, CLIENTS, SEED = 0.2, 8, 7
PATIENCE = httpx.Timeout(120)
QUIET = 60.0
"""Most seconds until all runs of a round have ended."""
SETTLED = 12.0
"""Seconds after which idle connections were closed."""
SMALL: Mapping[str, Mapping[str, Any]] = {
    "chain_of_thought": {},
    "react": {"search": "none", "max_actions": 2},
    "reflection": {"max_rounds": 1},
    "best_of_n": {"n": 2, "max_expansions": 2, "search": "none"},
    "lats": {"n": 2, "max_expansions": 2, "search": "none"},
}
"""Strategies, with settings of which a run takes some seconds at most."""
EXPECTED = {HTTPStatus.OK, HTTPStatus.NO_CONTENT, HTTPStatus.BAD_GATEWAY}
"""What requests may be answered with: a run that ends without an answer is a 502."""
SLACK: Mapping[str, float] = {"memory": 0.03, "connections": 0.1, "files": 0.1, "threads": 0.1, "tasks": 0.0}
"""The share by which what is held may differ from one third to the next; of all but memory also by one."""


class Held(NamedTuple):
    """What the server's process holds: megabytes, connections, open files, threads, and tasks of its event loop."""

    memory: float
    connections: int
    files: int
    threads: int
    tasks: int


class Traffic:
    """Clients of a server, each of which does one thing after the other, drawn by chance.

    Args:
        http: Sends the requests.
        sdk: LangGraph's client of the same server.
        random: Draws.

    Attributes:
        done: How often each thing was done.
        wrong: What was answered wrongly, with how often.
    """

    def __init__(self, http: httpx.AsyncClient, sdk: LangGraphClient, random: Random) -> None:
        self._http, self._sdk, self._random = http, sdk, random
        self.done: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self._actions: Sequence[Callable[[], Awaitable[None]]] = (
            self.completion,
            self.streamed_completion,
            self.left_completion,
            self.left_stream,
            self.thread_of_completions,
            self.stored_response,
            self.cancelled_response,
            self.message,
            self.streamed_message,
            self.tool_call,
            self.thread,
        )

    async def work(self, until: float) -> None:
        """Do one thing after the other until a time of the clock."""
        while time.monotonic() < until:
            action = self._random.choice(self._actions)
            try:
                await action()
            except Exception as error:  # noqa: BLE001 # each is reported in the end
                self.wrong[f"{action.__name__}: {type(error).__name__} {str(error)[:100]}"] += 1
            self.done[action.__name__] += 1

    def _body(self, strategy: str = "", **fields: Any) -> dict[str, Any]:
        strategy = strategy or self._random.choice([*SMALL])
        question = f"An unsolvable question, number {self._random.randrange(10**9)}"
        messages = {"messages": [{"role": "user", "content": question}]}
        return {"model": strategy, "settings": SMALL[strategy], **messages, **fields}

    def _response_body(self, strategy: str = "", **fields: Any) -> dict[str, Any]:
        body = self._body(strategy, **fields)
        return {"input": body.pop("messages"), **body}

    async def _send(self, method: str, path: str, body: dict[str, Any] | None = None, **options: Any) -> httpx.Response:
        answer = await self._http.request(method, path, json=body, **options)
        if answer.status_code not in EXPECTED:
            self.wrong[f"{method} {path.partition('resp_')[0]}: {answer.status_code} {answer.text[:100]}"] += 1
        return answer

    async def _stream(self, path: str, body: dict[str, Any], most: int | None = None) -> None:
        """Read a stream to its end, or leave after so many lines."""
        async with self._http.stream("POST", path, json=body) as answer:
            if answer.status_code not in EXPECTED:
                self.wrong[f"{path}, streamed: {answer.status_code}"] += 1
            lines = 0
            async for line in answer.aiter_lines():
                lines += bool(line)
                if lines == most:
                    return

    async def completion(self) -> None:
        """Ask for a completion in one piece."""
        await self._send("POST", "/v1/chat/completions", self._body())

    async def streamed_completion(self) -> None:
        """Ask for a completion piece by piece."""
        await self._stream("/v1/chat/completions", self._body(stream=True))

    async def left_completion(self) -> None:
        """Leave before the answer is there; some runs go on without their client."""
        goes_on = self._random.choice(["cancel", "continue"])
        body, patience = self._body(on_disconnect=goes_on), self._random.uniform(0.05, 0.6)
        with suppress(httpx.TimeoutException):
            await self._http.post("/v1/chat/completions", json=body, timeout=patience)

    async def left_stream(self) -> None:
        """Leave a stream after some lines."""
        await self._stream("/v1/chat/completions", self._body(stream=True), self._random.randint(1, 4))

    async def thread_of_completions(self) -> None:
        """Ask twice on a thread that is kept, and delete it."""
        body = self._body(thread_id=(thread := str(uuid4())))
        await self._send("POST", "/v1/chat/completions", body)
        await self._send("POST", "/v1/chat/completions", self._body(body["model"], thread_id=thread))
        await self._sdk.threads.delete(thread)

    async def stored_response(self) -> None:
        """Ask for a response that is stored, read it, go on from it, and delete both."""
        body = self._response_body(store=True)
        first = (await self._send("POST", "/v1/responses", body)).json()
        if "id" not in first:
            return
        await self._send("GET", f"/v1/responses/{first['id']}")
        await self._send("GET", f"/v1/responses/{first['id']}/input_items")
        going_on = self._response_body(body["model"], store=True, previous_response_id=first["id"])
        second = (await self._send("POST", "/v1/responses", going_on)).json()
        for response in (second, first):
            if "id" in response:
                await self._send("DELETE", f"/v1/responses/{response['id']}")

    async def cancelled_response(self) -> None:
        """Ask for a response in the background, cancel it or wait for its end, and delete it."""
        body = self._response_body(store=True, background=True)
        response = (await self._send("POST", "/v1/responses", body)).json()
        if "id" not in response:
            return
        await asyncio.sleep(self._random.uniform(0, 0.6))
        if self._random.random() < 0.5:
            await self._send("POST", f"/v1/responses/{response['id']}/cancel", {})
        while response["status"] in ("queued", "in_progress"):
            await asyncio.sleep(0.3)
            response = (await self._send("GET", f"/v1/responses/{response['id']}")).json()
        await self._send("DELETE", f"/v1/responses/{response['id']}")

    async def message(self) -> None:
        """Ask for a message in Anthropic's form."""
        await self._send("POST", "/v1/messages", self._body(max_tokens=500))

    async def streamed_message(self) -> None:
        """Ask for a message piece by piece; a third leave in the middle."""
        most = self._random.choice([None, None, self._random.randint(1, 6)])
        await self._stream("/v1/messages", self._body(max_tokens=500, stream=True), most)

    async def tool_call(self) -> None:
        """Call a strategy as a tool of MCP, a half with progress."""
        body = self._body()
        given = {"question": body["messages"][0]["content"], "settings": body["settings"]}
        params: dict[str, Any] = {"name": body["model"], "arguments": given}
        if self._random.random() < 0.5:
            params["_meta"] = {"progressToken": 1}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accepted = {"accept": "application/json, text/event-stream"}
        await self._send("POST", "/mcp", call, headers=accepted)

    async def thread(self) -> None:
        """Use a thread over LangGraph's API: stream a run, wait for one, cancel one, and delete it."""
        body = self._body()
        given = {"messages": body["messages"]}
        thread = (await self._sdk.threads.create())["thread_id"]
        async for _ in self._sdk.runs.stream(
            thread, body["model"], input=given, context=body["settings"], stream_mode=["values", "custom"]
        ):
            pass
        await self._sdk.runs.wait(thread, body["model"], input=given, context=body["settings"])
        run = await self._sdk.runs.create(thread, body["model"], input=given, context=body["settings"])
        await asyncio.sleep(self._random.uniform(0, 0.4))
        await self._sdk.runs.cancel(thread, run["run_id"], wait=True)
        await self._sdk.threads.get_state(thread)
        await self._sdk.threads.delete(thread)


async def held(server: Server, http: httpx.AsyncClient) -> Held:
    """Return what the server's process holds."""
    process = psutil.Process(server.process.pid)
    connected = [each for each in process.net_connections("all") if each.status != psutil.CONN_LISTEN]
    memory = process.memory_info().rss / 2**20
    return Held(memory, len(connected), process.num_fds(), process.num_threads(), await metric("reflect_tasks", http))


async def metric(name: str, http: httpx.AsyncClient) -> int:
    """Return a metric of the server's."""
    families = text_string_to_metric_families((await http.get("/metrics")).text)
    return int(next(sample.value for family in families for sample in family.samples if sample.name == name))


async def all_ended(http: httpx.AsyncClient) -> bool:
    """Wait until no run is under way; tell whether that was soon enough."""
    deadline = time.monotonic() + QUIET
    while time.monotonic() < deadline:
        if not await metric("reflect_running_runs", http) + await metric("reflect_queued_runs", http):
            return True
        await asyncio.sleep(0.5)
    return False


def grown(rounds: Sequence[Held]) -> list[str]:
    """Return what has grown: what the last third of the rounds holds more than the second, beyond `SLACK`.

    Args:
        rounds: At least three; in the first third caches and pools fill.
    """
    third = len(rounds) // 3
    found = []
    for name, slack in SLACK.items():
        values = [getattr(each, name) for each in rounds]
        before, after = median(values[third : len(values) - third]), median(values[-third:])
        if after > before * (1 + slack) + (name != "memory"):
            found.append(f"{name}: {before:.0f} -> {after:.0f}")
    return found


async def mixed(server: Server, minutes: int, seconds: float, settled: float, clients: int) -> list[str]:
    """Send traffic for so many rounds, print a row after each, and return what is wrong or has grown.

    Args:
        server: The server.
        minutes: The rounds, at least 3.
        seconds: How long clients begin new things in a round.
        settled: Seconds from the end of the last run of a round until what is held is counted.
        clients: How many there are.
    """
    wrong, rounds = Counter[str](), list[Held]()
    limits = httpx.Limits(max_keepalive_connections=0)  # so that all connections of the server at rest are its own
    async with (
        httpx.AsyncClient(base_url=server.address, timeout=PATIENCE, limits=limits) as http,
        get_client(url=server.address) as sdk,
    ):
        print("| minute | things done | wrong | MB | connections | files | threads | tasks |", flush=True)
        print("|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)
        done = Counter[str]()
        for minute in range(1, minutes + 1):
            traffic = [Traffic(http, sdk, Random(SEED + 1000 * minute + number)) for number in range(clients)]
            until = time.monotonic() + seconds
            await asyncio.gather(*(client.work(until) for client in traffic))
            for client in traffic:
                done, wrong = done + client.done, wrong + client.wrong
            if not await all_ended(http):
                wrong["runs that have not ended"] += 1
            await asyncio.sleep(settled)
            rounds.append(await held(server, http))
            memory, *counts = rounds[-1]
            cells = (minute, done.total(), wrong.total(), f"{memory:.0f}", *counts)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print("\n" + ", ".join(f"{name} {count}" for name, count in sorted(done.items())))
    return [f"{count} x {what}" for what, count in wrong.items()] + [f"grown: {what}" for what in grown(rounds)]


def main() -> int:
    """Print a row for each round, and what is wrong; `MISSED` if anything is."""
    parser = parser_of("bench.mixed", __doc__)
    parser.add_argument("--minutes", type=int, default=30, help="rounds of a minute of traffic, at least 3")
    parser.add_argument("--clients", type=int, default=CLIENTS, help="how many ask at the same time")
    options = parser.parse_args()
    seconds, settled = (1.0, 0.0) if options.quick else (60.0, SETTLED)
    with TemporaryDirectory() as folder, serving(LATENCY), ExitStack() as stack:
        os.environ |= {"REFLECT_SERVE_DIR": folder, "MODEL": "openai:test", "XDG_RUNTIME_DIR": folder}
        os.environ |= {"DATABASE_URL": stack.enter_context(postgres()), "REDIS_URL": stack.enter_context(redis())}
        server = Server({}, Path(folder) / "server.log")
        stack.callback(server.end)
        server.wait_until_ready()
        minutes = 3 if options.quick else max(options.minutes, 3)
        found = asyncio.run(mixed(server, minutes, seconds, settled, options.clients))
    if options.quick:
        found = [each for each in found if not each.startswith("grown")]  # of so few runs it would mean nothing
    for each in found:
        print(each)
    return MISSED if found else 0


if __name__ == "__main__":
    sys.exit(main())
