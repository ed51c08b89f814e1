"""Streams as a shell may hand them over."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.hostile, pytest.mark.thorough]

ROOT = Path(__file__).parents[2]
RUN = "run chain_of_thought 'What is LATS?' --model offline"


def shell(arguments: str, redirection: str) -> subprocess.CompletedProcess[str]:
    command = f"{shlex.quote(sys.executable)} -m reflective_agents.cli {arguments} {redirection}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False, env=environment)


def test_a_full_disk_is_one_line() -> None:
    ended = shell(RUN, ">/dev/full")
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        1,
        "reflect: the output cannot be written: No space left on device",
    )
    assert "Traceback" not in ended.stderr


def test_an_answer_that_nobody_would_get_is_not_asked_for() -> None:
    ended = shell(RUN, ">&-")
    assert ended.returncode == 2
    assert ended.stderr.startswith("reflect: standard output is closed, so the answer would be lost")


def test_what_belongs_to_stderr_never_comes_to_stdout() -> None:
    usual, closed = shell(RUN, "2>/dev/null"), shell(RUN, "2>&-")
    assert (closed.returncode, closed.stdout) == (0, usual.stdout)
    assert shell("run chain_of_thought ''", "2>&- <&-").returncode == 2
