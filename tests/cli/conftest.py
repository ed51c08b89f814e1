"""How tests call the command: in this process, or as a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from reflective_agents.cli.main import main
from reflective_agents.cli.signals import ENDINGS
from reflective_agents.testing.openai_server import OpenAIServer
from reflective_agents.testing.script import Reply, Request

ROOT = Path(__file__).parent.parent.parent


@dataclass
class Ended:
    """What came of a command."""

    code: int
    out: str
    err: str


Reflect = Callable[..., Ended]


@pytest.fixture(scope="session", autouse=True)
def built_once() -> Iterator[None]:
    """Share the commands among calls in this process: building them takes half of a call, and nothing changes them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", cache(get_command))
        yield


@pytest.fixture(autouse=True)
def away_from_the_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in an empty folder: the one of the project may hold a `.env`."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Let signals end the tests again after a command that was interrupted in this process."""
    handlers = {number: signal.getsignal(number) for number in ENDINGS}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def reflect(capsys: pytest.CaptureFixture[str]) -> Reflect:
    """Return the command, called in this process."""

    def call(*args: str) -> Ended:
        code = main(list(args))
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return call


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return what starts the command as a process; those that still run are killed in the end."""
    processes: list[subprocess.Popen[str]] = []

    def popen(*args: str, **settings: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error::ResourceWarning", **settings}
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "reflective_agents.cli", *args]
        processes.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment))
        return processes[-1]

    yield popen
    for process in processes:
        process.kill()
        process.communicate()


def stubborn(request: Request) -> Reply:
    """Answer differently each time, and never be content."""
    number = int(request.key[:8], 16) + request.index
    match request.schema:
        case "Judgement":
            return {"reasoning": "Not yet.", "score": number % 60 / 100, "solved": False}
        case "Judgements":
            scores = [(number + index) % 60 / 100 for index in range(request.last.count("<candidate "))]
            return {"judgements": [{"reasoning": "Not yet.", "score": score, "solved": False} for score in scores]}
        case "Critique":
            return {"critique": "Not yet.", "score": number % 60 / 100, "accept": False}
        case "AnswerQuestion" | "ReviseAnswer":
            missing = {"missing": "More.", "superfluous": "", "complete": False}
            return {"answer": f"{number}", "reflection": missing, "search_queries": [f"{number}"], "references": []}
        case _:
            return f"Answer {number}"


@pytest.fixture
def slow_server() -> Iterator[OpenAIServer]:
    """Return a server whose every answer takes long enough to be interrupted."""
    with OpenAIServer(stubborn, latency=0.3).threaded() as server:
        yield server
