"""The file of the threads: private, and claimed without a long wait."""

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import EXT_CONSTRUCTOR_SINGLE_ARG

from reflective_agents.cli import database
from reflective_agents.cli.threads import open_saver
from tests.cli.conftest import Reflect

pytestmark = pytest.mark.hostile

RUN = ("run", "chain_of_thought", "What is LATS?", "--model", "offline")


@pytest.fixture
def home() -> Path:
    """Return the folder of the threads, which others may enter, as if it had been there before."""
    folder = Path(os.environ["REFLECT_HOME"])
    folder.mkdir(mode=0o755, parents=True)
    return folder


def test_conversations_are_the_owners(reflect: Reflect, home: Path) -> None:
    (home / "threads.sqlite").touch(0o644)  # as earlier versions left it
    assert reflect(*RUN).code == 0
    assert {file.name: file.stat().st_mode & 0o777 for file in home.iterdir()} == {
        "threads.sqlite": 0o600,
        "locks": 0o700,
    }


def test_a_locked_file_is_told_soon(reflect: Reflect, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LOCKED_SECONDS", 0.1)
    holder = sqlite3.connect(home / "threads.sqlite")
    holder.execute("BEGIN EXCLUSIVE")
    ended = reflect(*RUN)
    holder.close()
    assert ended.code == 2
    assert ended.err.endswith("threads.sqlite cannot be used (database is locked): wait for the process that uses it\n")


async def test_those_who_come_first_at_once_get_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def enter() -> None:
        async with open_saver():
            pass

    for number in range(20):
        monkeypatch.setenv("REFLECT_HOME", str(tmp_path / str(number)))
        await asyncio.gather(*(enter() for _ in range(8)))


@pytest.mark.thorough
@pytest.mark.process
def test_a_tampered_checkpoint_calls_nothing(
    start: Callable[..., subprocess.Popen[str]], reflect: Reflect, home: Path, tmp_path: Path
) -> None:
    assert reflect(*RUN, "--thread", "t").code == 0
    mark = tmp_path / "mark"
    call = ormsgpack.packb(("subprocess", "getoutput", f"touch {mark}"))
    with sqlite3.connect(home / "threads.sqlite") as threads:
        hostile = ormsgpack.packb({"channel_values": ormsgpack.Ext(EXT_CONSTRUCTOR_SINGLE_ARG, call)})
        threads.execute("UPDATE checkpoints SET checkpoint = ?", (hostile,))
        threads.execute("UPDATE writes SET value = ?, type = 'msgpack'", (hostile,))
    start("tree", "chain_of_thought", "--thread", "t", LANGGRAPH_STRICT_MSGPACK="").communicate()
    process = start("run", "chain_of_thought", "Why?", "--thread", "t", LANGGRAPH_STRICT_MSGPACK="")
    _, errors = process.communicate()
    assert "Blocked deserialization" in errors or process.returncode
    assert not mark.exists()
