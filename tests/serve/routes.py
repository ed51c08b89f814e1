"""Every route of both servers, by what it can do. A new one is entered here, under what is tested of its kind."""

import json
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from reflective_agents.serve.run_key import RunKey
from tests.serve.gate import answered, caller
from tests.serve.rights import KEYS

ROOT = Path(__file__).parents[2]
Route = tuple[str, str]


def _routes(text: str) -> dict[str, set[Route]]:
    """Read lines of a kind, a method and paths."""
    rows = [line.split() for line in text.strip().splitlines()]
    by_kind: dict[str, set[Route]] = {}
    for kind, method, *paths in rows:
        by_kind.setdefault(kind, set()).update((method, path) for path in paths)
    return by_kind


BOTH = _routes("""
start   POST    /runs /runs/stream /runs/wait /runs/crons /v1/chat/completions /v1/messages /v1/responses
start   POST    /live/threads
start   POST    /threads/{thread_id}/runs /threads/{thread_id}/runs/stream /threads/{thread_id}/runs/wait
start   POST    /threads/{thread_id}/commands /threads/{thread_id}/runs/crons
start   ANY     /mcp
thread  GET     /threads/{thread_id} /threads/{thread_id}/state /threads/{thread_id}/history /threads/{thread_id}/runs
thread  GET     /threads/{thread_id}/runs/{run_id} /threads/{thread_id}/state/{checkpoint_id}
thread  GET     /threads/{thread_id}/runs/{run_id}/join /threads/{thread_id}/runs/{run_id}/stream
thread  GET     /live/threads/{thread:uuid} /live/threads/{thread:uuid}/events
thread  GET     /live/threads/{thread:uuid}/passages
thread  POST    /threads/{thread_id}/state /threads/{thread_id}/history /threads/{thread_id}/state/checkpoint
thread  POST    /threads/{thread_id}/runs/{run_id}/cancel /threads/{thread_id}/stream/events /live/threads/{thread:uuid}
thread  GET     /v1/responses/{response_id} /v1/responses/{response_id}/input_items
thread  POST    /v1/responses/{response_id}/cancel
thread  PATCH   /threads/{thread_id}
thread  DELETE  /v1/responses/{response_id} /threads/{thread_id} /threads/{thread_id}/runs/{run_id}
own     GET     /live/threads /live/strategies /v1/models /v1/models/{model:path}
own     POST    /threads /threads/search /threads/prune /runs/cancel /v1/messages/count_tokens
own     POST    /assistants /assistants/search /assistants/count
own     POST    /assistants/{assistant_id}/latest /assistants/{assistant_id}/versions
own     GET     /assistants/{assistant_id} /assistants/{assistant_id}/graph /assistants/{assistant_id}/schemas
own     GET     /assistants/{assistant_id}/subgraphs
own     PATCH   /assistants/{assistant_id}
own     DELETE  /assistants/{assistant_id}
closed  POST    /runs/crons/search /runs/crons/count /store/items/search /store/namespaces
closed  PATCH   /runs/crons/{cron_id}
closed  DELETE  /runs/crons/{cron_id} /store/items
closed  GET     /store/items
closed  PUT     /store/items
public  GET     / /info /docs /openapi.json /live /live/tree /live/day
""")
DEV = _routes("""
start   POST    /runs/batch /a2a/{assistant_id} /a2a/{assistant_id}/
start   ANY     /threads/{thread_id}/stream/events
thread  GET     /threads/{thread_id}/stream /threads/{thread_id}/storage
thread  POST    /threads/{thread_id}/copy
own     GET     /assistants/{assistant_id}/subgraphs/{namespace} /a2a/{assistant_id} /a2a/{assistant_id}/
own     GET     /a2a/{assistant_id}/.well-known/agent-card.json /a2a/{assistant_id}/.well-known/agent.json
own     GET     /.well-known/agent-card.json
own     DELETE  /a2a/{assistant_id} /a2a/{assistant_id}/
own     POST    /threads/count /ui/{graph_id}
closed  GET     /runs/crons/{cron_id} /internal/debug/thread/{thread_id} /deploy /deploy/{operation_id}/stream
closed  POST    /internal/truncate /deploy
public  GET     /ok /metrics
public  ANY     /ui
""")
AEGRA = _routes("""
thread  PATCH   /threads/{thread_id}/runs/{run_id}
own     GET     /assistants /threads
closed  GET     /metrics
public  GET     /health /ready /redoc /docs/oauth2-redirect
""")


def of(kind: str, own: dict[str, set[Route]]) -> list[Route]:
    """Return the routes of a kind."""
    return sorted(BOTH.get(kind, set()) | own.get(kind, set()))


def all_routes(own: dict[str, set[Route]]) -> set[Route]:
    return {route for kinds in (BOTH, own) for routes in kinds.values() for route in routes}


def listed(python: Path | str, server: str) -> set[Route]:
    """Return the routes of a server, as its app has them."""
    command = [str(python), str(ROOT / "tests/serve/list_routes.py"), server]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-2000:]
    return {(method, path) for method, path in json.loads(run.stdout.splitlines()[-1])}


async def ask(http: httpx.AsyncClient, route: Route, **values: str) -> httpx.Response:
    """Send a request to a route; ids that are not given are those of nothing."""
    method, path = route
    for name in ("thread_id", "thread:uuid", "run_id", "assistant_id", "checkpoint_id", "cron_id", "graph_id"):
        path = path.replace(f"{{{name}}}", values.get(name.partition(":")[0].removesuffix("_id"), str(uuid4())))
    key = RunKey(values.get("thread", str(uuid4())), values.get("run", str(uuid4())))
    path = path.replace("{response_id}", key.id("resp"))
    path = path.replace("{namespace}", "x").replace("{operation_id}", "x")
    body: Any = {} if method in ("POST", "PUT", "PATCH", "ANY", "DELETE") else None
    if body is not None:
        body = {"channels": ["values"], "namespace_prefix": [], "namespace": ["a"], "key": "b", "value": {}}
    return await http.request("POST" if method == "ANY" else method, path, json=body)


async def nobody_is_answered_without_a_key(address: str, own: dict[str, set[Route]]) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=30) as http:
        for kind in ("start", "thread", "own", "closed"):
            for route in of(kind, own):
                answer = await ask(http, route)
                assert answer.status_code in (401, 403, 404, 405), (route, answer.status_code, answer.text[:200])
                assert answer.status_code in (401, 403) or kind == "closed" or "ANY" in route, (
                    route,
                    answer.status_code,
                )


async def what_is_closed_is_closed_with_a_key(address: str, own: dict[str, set[Route]]) -> None:
    async with caller(address) as http:
        for route in of("closed", own):
            answer = await ask(http, route)
            assert answer.status_code in (400, 403, 404, 405, 422), (route, answer.status_code, answer.text[:200])


async def nobody_reads_or_changes_the_thread_of_another(clients: Any, address: str, own: dict[str, set[Route]]) -> None:
    ann = clients("ann")
    thread = await answered(ann)
    run = (await ann.runs.list(thread))[0]["run_id"]
    at = (await ann.threads.get_state(thread))["checkpoint"]["checkpoint_id"]
    before = await ann.threads.get_state(thread)
    async with caller(address, "bob") as http:
        for route in of("thread", own):
            answer = await ask(http, route, thread=thread, run=run, checkpoint=at)
            empty = answer.status_code == 200 and (answer.text.strip() in ("[]", "") or "404: Thread" in answer.text)
            assert answer.status_code in (403, 404, 405, 409, 422) or empty, (
                route,
                answer.status_code,
                answer.text[:300],
            )
    assert await ann.threads.get_state(thread) == before
    assert KEYS["ann"] != KEYS["bob"]
