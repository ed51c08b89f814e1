"""One real development server for all tests of this folder, between a local OpenAI server and a local Tavily server.

It runs in a folder of links to the checkout, where it finds no `.env` and leaves its own files.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import Assistant

from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.responder import respond
from reflective_agents.testing.script import Reply, Request, ToolUse
from reflective_agents.testing.tavily_server import TavilyServer

ROOT = Path(__file__).parents[2]
KEYS = {"OPENAI_API_KEY": "sk-planted-in-the-environment", "TAVILY_API_KEY": "tvly-planted-in-the-environment"}
JOBS = 20
PROBE = """
import time
from langgraph.graph import START, StateGraph
from reflective_agents.state.run import Input

async def block(state: Input) -> None:
    time.sleep(0.01)

graph = StateGraph(Input).add_node("block", block).add_edge(START, "block").compile(name="probe")
"""


def script(request: Request) -> Reply:
    """Accept and solve everything, but no request that calls itself unsolvable; its answers are never the same."""
    if "unsolvable" in request.text and not request.schema:
        return f"Answer {request.index} after {len(request.messages)} messages"
    if "unsolvable" in request.text and request.schema in ("Judgement", "Judgements"):
        judgement = {"reasoning": "It does not answer.", "score": 0.3, "solved": False}
        each = [judgement] * request.last.count("<candidate ")
        return judgement if request.schema == "Judgement" else {"judgements": each}
    if "unsolvable" in request.text and request.schema == "AnswerQuestion":
        lacking = {"missing": "What LATS is.", "superfluous": "", "complete": False}
        return {"answer": "Not yet.", "reflection": lacking, "search_queries": ["LATS"]}
    if "exec_command" in request.tools:  # Codex's
        outputs = [str(message.text) for message in request.messages if message.type == "tool"]
        return outputs[-1] if outputs else [ToolUse("exec_command", {"cmd": "printf forty; echo -two"})]
    if "weather" in request.tools:
        found = [str(message.text) for message in request.messages if message.type == "tool"]
        cities = ("Oslo", "Rome") if "weather for two" in request.text else ("Oslo",)
        return " and ".join(found) or [ToolUse("weather", {"city": city}) for city in cities]
    return respond(request) if request.schema else f"Answer to: {request.last[:200]}"


@pytest.fixture(scope="session")
def openai_server() -> Iterator[OpenAIServer]:
    """Serve the model; it takes two seconds for requests that call themselves slow."""
    with OpenAIServer(script, latency=lambda request: 2.0 if "slow" in request.text else 0.0).threaded() as server:
        yield server


@pytest.fixture(scope="session")
def tavily_server() -> Iterator[TavilyServer]:
    with TavilyServer().threaded() as server:
        yield server


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the server is started in: the project, and one graph more, which blocks the event loop."""
    folder = tmp_path_factory.mktemp("checkout")
    for path in ROOT.glob("[!.]*"):
        (folder / path.name).symlink_to(path)
    config = json.loads((ROOT / "langgraph.json").read_text())
    config["graphs"]["probe"] = "blocking_probe:graph"
    (folder / "langgraph.json").unlink()
    (folder / "langgraph.json").write_text(json.dumps(config))
    (folder / "blocking_probe.py").write_text(PROBE)
    return folder


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that holds everything the server prints."""
    return tmp_path_factory.mktemp("log") / "server.log"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the operator lets the server search: the shipped articles, and what a test adds."""
    folder = tmp_path_factory.mktemp("corpus")
    shutil.copytree(ROOT / "reflective_agents/web_search/corpus_articles", folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def address(
    checkout: Path,
    corpus: Path,
    log: Path,
    openai_server: OpenAIServer,
    tavily_server: TavilyServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Start the server and return its address."""
    settings = KEYS | {
        "MODEL": "openai:test",
        "OPENAI_BASE_URL": openai_server.base_url,
        "TAVILY_BASE_URL": tavily_server.url,
        "REFLECT_CORPUS": str(corpus),
        "REFLECT_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "LOG_JSON": "true",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    port = free_port()
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    command += ["--n-jobs-per-worker", str(JOBS), "--port", str(port)]
    with log.open("wb") as output, running(command, checkout, settings, output.fileno()) as process:
        wait_until_ready(process, f"http://127.0.0.1:{port}", log)
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: list[str], folder: Path, settings: dict[str, str], output: int
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a process group of its own, of which nothing is left afterwards."""
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ | settings, stdout=output, stderr=output, start_new_session=True
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finish_group(process.pid)


def finish_group(group: int) -> None:
    """End what a process has left behind in its group."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:  # as it should be
        return


def wait_until_ready(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{address}/ok").json() == {"ok": True, "services": {}}:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail(f"the server does not start:\n{log.read_text()[-5000:]}")


@pytest.fixture
async def client(address: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=address) as client:
        yield client


@pytest.fixture
async def assistants(client: LangGraphClient) -> dict[str, Assistant]:
    """Return the assistants that the server has made by itself, by the name of their graph."""
    made = await client.assistants.search(metadata={"created_by": "system"}, limit=100)
    return {found["graph_id"]: found for found in made}


@pytest.fixture(scope="session")
def blocking_runs() -> set[str]:
    """Return the ids of the runs that are to block the event loop, for a test to add to."""
    return set()


@pytest.fixture(autouse=True)
def clean_log(address: str, log: Path, blocking_runs: set[str]) -> Iterator[None]:
    """Hold for every test: no key is logged, and no run has blocked the event loop that was not to do so."""
    before = log.stat().st_size
    yield
    lines = log.read_bytes()[before:].decode().splitlines()
    assert not [name for name, key in KEYS.items() if any(key in line for line in lines)]
    blocked = [line for line in lines if "Blocking call" in line]
    assert not [line for line in blocked if not any(run in line for run in blocking_runs)]
