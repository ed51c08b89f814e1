"""A product that uses strategies in all the ways that it can: it runs from the wheel, with routes of both kinds."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reflective_agents.testing.completions import Json
from reflective_agents.testing.faults import Fault
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request, ToolUse
from tests.persistence.conftest import postgres_server, postgres_url
from tests.test_product import ROOT, fresh, install

__all__ = ["postgres_server", "postgres_url"]
HERE = Path(__file__).parent
FORMS: dict[str, Reply] = {
    "Critique": {"critique": "Good.", "score": 0.9, "accept": True},
    "Judgement": {"reasoning": "Good.", "score": 0.9, "solved": True},
}
pytestmark = [pytest.mark.thorough, pytest.mark.process, pytest.mark.wire, pytest.mark.timeout(600)]


def model(request: Request) -> Any:
    """Lead the workers and sub-agents, fill in forms, and answer."""
    done = [message.text for message in request.messages if message.type == "tool"]
    for worker in ("researcher", "writer"):
        is_done = any(text.endswith(f"to {worker}") for text in done[_results_before(request) :])
        if f"transfer_to_{worker}" in request.tools and not is_done:
            return ToolUse(f"transfer_to_{worker}")
    if "task" in request.tools:
        return request.last if done else ToolUse("task", {"subagent_type": "thinker", "description": "What is UCT?"})
    if request.schema == "Judgements":
        return {"judgements": [FORMS["Judgement"]] * request.last.count("<candidate ")}
    if request.schema and "stars" in json.dumps(request.schemas[request.schema]):
        return {"summary": "Exploration and exploitation.", "stars": 5}
    return FORMS.get(request.schema or "", f"Exploration and exploitation, in way {request.index}.")


def _results_before(request: Request) -> int:
    """Count the results of tools before the last question."""
    last = max(index for index, message in enumerate(request.messages) if message.type == "human")
    return sum(message.type == "tool" for message in request.messages[:last])


def busy(body: Json, _: int) -> Fault | None:
    """Refuse whoever asks for the better model."""
    return "401" if body["model"] == "better" else None


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python of a fresh environment with the wheel."""
    folder = tmp_path_factory.mktemp("shop")
    fresh(folder)
    done = install(folder, ROOT)
    assert done.returncode == 0, done.stderr
    return folder / "venv/bin/python"


@pytest.mark.postgres
def test_the_shop_answers_on_all_its_routes_at_once(python: Path, postgres_url: str) -> None:
    with OpenAIServer(model, faults=busy).threaded() as server:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        settings = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "test", "SHOP_DATABASE": postgres_url}
        done = subprocess.run(
            [python, "-m", "shop.visit"], cwd=HERE, env=kept | settings, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    by = {route: [reply.get("by") for name, reply in seen["replies"] if name == route] for route, _ in seen["replies"]}
    desk = ["react", "reflection"]
    assert by["/desk/{thread}"] == by["/desk/{thread}/now"] == [desk] * 2
    assert all(reply["text"] for route, reply in seen["replies"] if route != "/opinion")
    opinions = [reply for route, reply in seen["replies"] if route == "/opinion"]
    assert [(reply["stars"], reply["status"]) for reply in opinions] == [(5, "answered")] * 2
    assert {exchange.body["model"] for exchange in server.requests} == {"better", "test"}
    assert seen["again"]["by"] == desk * 2
    assert seen["history"].count("human") == 2
