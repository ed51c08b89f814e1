"""What `make serve` counts, for Prometheus: at `/metrics`, for whoever has the key REFLECT_METRICS_KEY.

A server without keys of users serves its own machine alone, and needs none here either. What a process counts is its
own; the runs that wait, and those under way, are those of all processes.
"""

import asyncio
import hmac
import json
import math
import os
from collections.abc import Mapping
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from psycopg import OperationalError
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reflective_agents import telemetry
from reflective_agents.models.account import Account, Settle, uncharged
from reflective_agents.serve.keys import keys_required
from reflective_agents.state.limits import NANO
from reflective_agents.state.settings import strategy_names
from reflective_agents.text.structure import Json

VARIABLE = "REFLECT_METRICS_KEY"
RUNS = Counter("reflect_runs", "Runs that have ended here, by how.", ["strategy", "status"])
SECONDS = Histogram(
    "reflect_run_seconds",
    "Seconds that runs have taken.",
    ["strategy"],
    buckets=(0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800),
)
CALLS = Counter("reflect_model_calls", "Requests to models.", ["strategy"])
TOKENS = Counter("reflect_tokens", "Tokens of requests to models and of their answers.", ["strategy"])
DOLLARS = Counter("reflect_cost_dollars", "What requests to models have cost, where prices are known.", ["strategy"])
REFUSALS = Counter("reflect_refusals", "Requests that were refused, or have failed.", ["strategy", "status"])
WAITING = Gauge("reflect_queued_runs", "Runs that wait for a worker, of all processes.")
UNDER_WAY = Gauge("reflect_running_runs", "Runs under way, of all processes.")
TASKS = Gauge("reflect_tasks", "Tasks of this process's event loop.")
_PATIENCE = 3.0
"""Seconds to wait for a connection to the database."""
_COUNT = "SELECT status, count(*) AS runs FROM runs WHERE status IN ('pending', 'running') GROUP BY status"


def count_runs() -> None:
    """Count the runs of this process from now on."""
    telemetry.listen(_count_run)


def _count_run(event: Mapping[str, object]) -> None:
    # A strategy within another one is a part of that run.
    if event.get("parent_run_id") or event["event"] not in ("end", "broken_off"):
        return
    strategy, seconds = str(event["strategy"]), event.get("seconds")
    # A run that was not let end is no failure.
    unfinished = "cancelled" if event.get("fault") == "CancelledError" else "error"
    RUNS.labels(strategy, str(event.get("status") or unfinished)).inc()
    if isinstance(seconds, int | float):
        SECONDS.labels(strategy).observe(seconds)


class CountingAccount:
    """Counts what is charged to an account.

    Args:
        account: The account; None if nothing is limited.
    """

    def __init__(self, account: Account | None) -> None:
        self._account = account

    async def hold(self, tokens: int, nano: int | None) -> Settle:
        """Hold one call."""
        settle = await self._account.hold(tokens, nano) if self._account else uncharged
        strategy = telemetry.current_strategy() or ""

        async def count(calls: int, spent_tokens: int, spent_nano: int) -> None:
            CALLS.labels(strategy).inc(calls)
            TOKENS.labels(strategy).inc(spent_tokens)
            DOLLARS.labels(strategy).inc(spent_nano / NANO)
            await settle(calls, spent_tokens, spent_nano)

        return count


class CountsRefusals:
    """Counts the requests that an application answers with an error, by the strategy that they name."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        body = list[bytes]()

        async def read() -> Message:
            message = await receive()
            body.append(message.get("body", b""))
            return message

        async def write(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= HTTPStatus.BAD_REQUEST:
                REFUSALS.labels(_strategy_in(b"".join(body)), str(message["status"])).inc()
            body.clear()
            await send(message)

        return await self._app(scope, read, write)


def _strategy_in(body: bytes) -> str:
    """Return the strategy that a request names; an empty text if it names none: labels are never a client's words."""
    try:
        request: Json = json.loads(body)
    except ValueError:
        return ""
    named = request.get("model") or request.get("assistant_id") if isinstance(request, dict) else None
    strategy = str(named).partition(":")[0]
    return strategy if strategy in strategy_names() else ""


async def metrics(request: Request) -> Response:
    """Return all that was counted, for Prometheus."""
    key = os.environ.get(VARIABLE) or ""
    if not key and keys_required():
        return PlainTextResponse(f"The operator can set {VARIABLE}.", HTTPStatus.NOT_FOUND)
    sent = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    if key and not hmac.compare_digest(sent.encode(), key.encode()):
        return PlainTextResponse(f"{VARIABLE} is needed as 'Authorization: Bearer <key>'.", HTTPStatus.UNAUTHORIZED)
    await _look_at_queue()
    TASKS.set(len(asyncio.all_tasks()))
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _look_at_queue() -> None:
    from aegra_api.core.database import db_manager

    try:
        async with db_manager.lg_pool.connection(timeout=_PATIENCE) as connection:
            rows = await (await connection.execute(_COUNT)).fetchall()
        runs = {row["status"]: float(row["runs"]) for row in rows}
    except OperationalError:  # the other figures are there all the same
        runs = dict.fromkeys(("pending", "running"), math.nan)
    WAITING.set(runs.get("pending", 0))
    UNDER_WAY.set(runs.get("running", 0))


route = Route("/metrics", metrics)
