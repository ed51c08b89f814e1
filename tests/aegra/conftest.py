"""Aegra, as `make serve` starts it: two processes on one Postgres and one Redis, in front of a local OpenAI server."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from reflective_agents.serve.local import postgres, redis
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.aegra.outage import Outage
from tests.aegra.process import KEYS, Server

POLICY = {"models": ["openai:test", "offline"], "run": {"max_model_calls": 60}}
LEASES = {"LEASE_DURATION_SECONDS": "8", "HEARTBEAT_INTERVAL_SECONDS": "2", "REAPER_INTERVAL_SECONDS": "2"}
"""A run of a process that has died is taken over after ten seconds, and not after fifty."""


Start = Callable[..., Server]


def script(request: Request) -> Reply:
    """Never accept what calls itself unsolvable; its answers are never the same. Call the client's tools once each."""
    tools = [name for name in ("weather", "wind") if name in request.tools and f"{name} is" not in request.text]
    if tools:
        return ToolUse(tools[0], {"city": "Oslo"})
    if "unsolvable" in request.text and not request.schema:
        return f"Answer {request.index} after {len(request.messages)} messages"
    if "unsolvable" in request.text and request.schema in ("Judgement", "Judgements"):
        judgement = {"reasoning": "It does not answer.", "score": 0.3, "solved": False}
        each = [judgement] * request.last.count("<candidate ")
        return judgement if request.schema == "Judgement" else {"judgements": each}
    return respond(request) if request.schema else f"Answer to: {request.last[:200]}"


def latency(request: Request) -> float:
    """Take longer for requests that call themselves slow, or very slow."""
    return 4.0 if "very slow" in request.text else 0.5 if "slow" in request.text else 0.1


@pytest.fixture(scope="session")
def model_server() -> Iterator[OpenAIServer]:
    with OpenAIServer(script, latency=latency).threaded() as server:
        yield server


@pytest.fixture(scope="session")
def settings(model_server: OpenAIServer) -> Iterator[dict[str, str]]:
    """Start a Postgres and a Redis, and return what every process of the server is told."""
    # Postgres gives up root's rights, and could not enter pytest's folder without them.
    with TemporaryDirectory() as path:
        yield from _settings(Path(path), model_server)


def _settings(folder: Path, model_server: OpenAIServer) -> Iterator[dict[str, str]]:
    lines = [f"{user} {hashlib.sha256(key.encode()).hexdigest()}" for user, key in KEYS.items()]
    (folder / "keys").write_text("\n".join(lines))
    (folder / "policy.json").write_text(json.dumps(POLICY))
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("REFLECT_SERVE_DIR", str(folder))
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield LEASES | {
            "DATABASE_URL": stack.enter_context(postgres()),
            "REDIS_URL": stack.enter_context(redis()),
            "REFLECT_KEYS": str(folder / "keys"),
            "REFLECT_POLICY": str(folder / "policy.json"),
            "REFLECT_CACHE_DIR": str(folder),
            "MODEL": "openai:test",
            "OPENAI_API_KEY": "sk-planted-in-the-environment",
            "OPENAI_BASE_URL": model_server.base_url,
            "LANGSMITH_TRACING": "false",
            # As outside of tests, which tell LangGraph to make plain data alone: here the server has to say so.
            "LANGGRAPH_STRICT_MSGPACK": "",
        }


@pytest.fixture(scope="session")
def outage(settings: dict[str, str]) -> Iterator[Outage]:
    """Return what takes Postgres and Redis away from the servers, which end before it does."""
    outage = Outage(settings["DATABASE_URL"], settings["REDIS_URL"])
    yield outage
    outage.end()


@pytest.fixture(scope="session")
def start(settings: dict[str, str], outage: Outage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Return a function that starts a process of the server, with settings of its own if need be."""
    started: list[Server] = []

    def start(**own: str) -> Server:
        started.append(Server(settings | own, tmp_path_factory.mktemp("log") / "server.log"))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.end()


@pytest.fixture(scope="session")
def servers(start: Start) -> list[Server]:
    """Return two processes of the server; a test that ends one starts another one in its place."""
    first = start()
    first.wait_until_ready()  # it makes the tables
    second = start()
    second.wait_until_ready()
    return [first, second]


@pytest.fixture(autouse=True)
async def close_clients(servers: list[Server]) -> AsyncIterator[None]:
    """Close what a test has opened."""
    before = [*servers]
    yield
    for client in [client for server in {*before, *servers} for client in server.clients]:
        await client.aclose()
    for server in servers:
        server.clients.clear()
