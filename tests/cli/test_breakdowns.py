"""What breaks down in the middle of a run: the patience of a person, the disk, the checkpoints."""

import os
import re
import resource
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reflective_agents.testing.openai_server import OpenAIServer
from tests.cli.conftest import Reflect
from tests.cli.test_terminal import settings, wait_for_line

pytestmark = [pytest.mark.wire, pytest.mark.process, pytest.mark.hostile, pytest.mark.thorough]
pytestmark += [pytest.mark.timeout(600)]
Start = Callable[..., subprocess.Popen[str]]
GO_ON = "go on with: reflect run reflection --thread t --resume"
LONGEST = 300
"""Seconds in which a process ends, also on a busy machine."""


def begun(start: Start, server: OpenAIServer) -> subprocess.Popen[str]:
    """Start a run in whose middle something may break down."""
    process = start("run", "reflection", "Why?", "--max-rounds", "20", "--thread", "t", **settings(server))
    wait_for_line(process, "draft: round=2")
    return process


def assert_goes_on(start: Start, server: OpenAIServer) -> None:
    """Take the run up, and see that nothing is done again."""
    command = ("run", "reflection", "--thread", "t", "--resume", "--max-rounds", "4")
    out, err = start(*command, **settings(server)).communicate(timeout=LONGEST)
    assert "draft: round=1," not in err
    assert re.search("limit_reached: .*max_rounds", out), err


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_a_person_who_interrupts_again_and_again(start: Start, slow_server: OpenAIServer, pause: float) -> None:
    process = begun(start, slow_server)
    for _ in range(3):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(pause)
    out, err = process.communicate(timeout=LONGEST)
    assert process.returncode in (
        130,
        -signal.SIGINT,
    )  # the latter if Python was ending already; to a shell both are 130
    assert (out, "Traceback" in err) == ("", False)
    assert err.splitlines()[-1] == f"interrupted; {GO_ON}"
    assert_goes_on(start, slow_server)


def test_a_disk_that_is_full(start: Start, slow_server: OpenAIServer) -> None:
    process = begun(start, slow_server)
    size = (Path(os.environ["REFLECT_HOME"]) / "threads.sqlite").stat().st_size
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, size))  # no file may grow any more
    out, err = process.communicate(timeout=LONGEST)
    assert (process.returncode, out) == (1, "")
    assert "Traceback" not in err
    assert err.endswith(f"set REFLECT_HOME to another folder; then {GO_ON}\n")
    assert_goes_on(start, slow_server)


@pytest.mark.parametrize("kind", ["pickle", "json", "msgpack", "null", "no such kind"])
def test_a_checkpoint_that_cannot_be_read(reflect: Reflect, kind: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    call = f"cposix\nsystem\n(S'touch {mark}'\ntR.".encode()
    run = ("run", "chain_of_thought", "Why?", "--model", "offline", "--thread", "t")
    assert reflect(*run).code == 0
    with sqlite3.connect(Path(os.environ["REFLECT_HOME"]) / "threads.sqlite") as threads:
        threads.execute("UPDATE checkpoints SET checkpoint = ?, type = ?", (call, kind))
        threads.execute("UPDATE writes SET value = ?, type = ?", (call, kind))
    for command in (run, ("draw", "chain_of_thought", "--thread", "t"), ("threads",)):
        ended = reflect(*command)
        assert (ended.code, ended.out) == (2, "")
        assert "cannot be read" in ended.err
        assert len(ended.err.splitlines()) == 1
    assert not mark.exists()
