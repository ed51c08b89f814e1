"""Clients of other makers on /v1/responses and /v1/messages, as published: what they do by default works."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.studio, pytest.mark.clients, pytest.mark.thorough, pytest.mark.timeout(900)]

CLIENTS = Path(__file__).parent / "clients"
NPM = ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "openai@7.57.0", "zod@4", "@openai/codex@0.171.0")
PYPI = ("anthropic==2.14.0", "openai-agents==0.24.0", "pydantic-ai-slim[openai]==2.68.0")
CODEX = """
model = "react"
model_provider = "reflective"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"

[model_providers.reflective]
name = "reflective-agents"
base_url = "{address}/v1"
wire_api = "responses"
env_key = "PATH"
"""
BOTH = "20 degrees in Oslo and 20 degrees in Rome"


def install(*command: str, folder: Path) -> None:
    """Install clients, or leave out the tests where their registry is not reached."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=800)
    if done.returncode:
        pytest.skip(f"{command[0]} reaches no registry: {done.stderr.strip()[-300:]}")


def with_npm(folder: Path) -> Path:
    """Return a folder with the clients of npm, and the scripts that use them."""
    for script in CLIENTS.glob("*.mjs"):
        (folder / script.name).write_text(script.read_text())
    (folder / "package.json").write_text("{}")
    install("npm", "install", "--no-audit", "--no-fund", *NPM, folder=folder)
    return folder


def with_pip(folder: Path) -> Path:
    """Return a Python with the clients of PyPI."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True, timeout=300)
    python = folder / "venv/bin/python"
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", str(python))
    install(*pip, "install", "--no-compile", *PYPI, folder=folder)
    return python


@pytest.fixture(scope="module")
def installs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Path]]]:
    """Install from both registries at once."""
    with ThreadPoolExecutor() as pool:
        yield {
            work.__name__: pool.submit(work, tmp_path_factory.mktemp(work.__name__)) for work in (with_npm, with_pip)
        }


@pytest.fixture(scope="module")
def npm(installs: dict[str, Future[Path]]) -> Path:
    return installs["with_npm"].result()


@pytest.fixture(scope="module")
def python(installs: dict[str, Future[Path]]) -> Path:
    return installs["with_pip"].result()


def found(*command: str | Path, folder: Path | None = None) -> Any:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_ai_sdk(npm: Path, address: str) -> None:
    form = found("node", "ai_sdk.mjs", address, folder=npm)
    assert form.pop("form").keys() == {"city"}
    assert form == {
        "plain": "Question: Why?",
        "counted": True,
        "stream": "Question: Why?",
        "tools": BOTH,
        "refused": 404,
    }


def test_openais_client_of_npm(npm: Path, address: str) -> None:
    assert found("node", "openai_npm.mjs", address, folder=npm) == {
        "plain": "Question: Why?",
        "fetched": "Question: Why?",
        "items": 1,
        "stream": "Question: How?",
        "alone": "Question: Why alone?",
        "refused": 404,
    }


def test_openais_agents(python: Path, address: str) -> None:
    answers = found(python, CLIENTS / "openai_agents.py", address)
    assert answers == {"plain": "Question: Why?", "tools": BOTH, "stream": BOTH}


def test_pydantics_agents(python: Path, address: str) -> None:
    answers = found(python, CLIENTS / "pydantic_agents.py", address)
    assert answers.pop("form").keys() == {"city"}
    assert answers == {"plain": "Question: Why?", "again": "Question: How?", "tools": BOTH}


def test_anthropics_client(python: Path, address: str) -> None:
    assert found(python, CLIENTS / "anthropic_sdk.py", address) == {
        "plain": "Question: Why?",
        "counted": True,
        "stream": "Question: How?",
        "blocks": ["thinking", "text"],
        "reasons": ["end_turn", "end_turn", "tool_use", "end_turn"],
        "tools": BOTH,
        "document": 'Question: <document title="Trams">',
        "estimated": True,
        "refused": 404,
    }


def test_codex(npm: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Codex carry a command out, which the model asks for by its own tool."""
    (tmp_path / "config.toml").write_text(CODEX.format(address=address))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    command: list[str | Path] = [npm / "node_modules/.bin/codex", "exec", "--skip-git-repo-check", "How much is it?"]
    done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "forty-two" in done.stdout
