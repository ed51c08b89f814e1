"""What version 0.1.0 left behind, unpacked for tests: a home of the command, and what is to be found in it."""

import json
import lzma
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

V1 = Path(__file__).parent.parent / "old_data" / "v1"
EXPECTED: dict[str, Any] = json.loads((V1 / "expected.json").read_text("utf-8"))
THREADS: dict[str, dict[str, Any]] = EXPECTED["threads"]["sqlite"]
IN_POSTGRES: dict[str, dict[str, Any]] = EXPECTED["threads"]["postgres"]
NEXT = "And what does it cost?"

MAY_SAY_WHY_NOT: frozenset[str] = frozenset()
"""Strategies whose runs of 0.1.0 a later version need not go on with, if one line says so."""


@dataclass
class Told:
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def outcome(self) -> str:
        """The status that it has ended with."""
        return (self.out.splitlines() or [""])[-1].partition(":")[0]


def unpacked(name: str) -> bytes:
    """A file that is kept compressed."""
    return lzma.decompress((V1 / f"{name}.xz").read_bytes())


def lay_out(home: Path) -> None:
    """Make the folder in which the command keeps what it remembers."""
    home.mkdir(mode=0o700)
    for name in ("threads.sqlite", "memory.sqlite"):
        (home / name).write_bytes(unpacked(name))
    shutil.copytree(V1 / "evals", home / "evals")


def of_state(state: str, threads: dict[str, dict[str, Any]] = THREADS) -> list[str]:
    """The threads that stood so."""
    return [name for name, thread in threads.items() if thread["state"] == state]


def settings_of(thread: dict[str, Any]) -> list[str]:
    """The options with which a thread was asked last."""
    asked = [command for command in thread["commands"] if "--resume" not in command][-1]
    return [*asked[5:]]


def owner_options(thread: dict[str, Any]) -> list[str]:
    """The option that says whose thread it is."""
    return settings_of(thread) if thread["strategy"] == "memory" else []


def assert_goes_on(told: Told, thread: dict[str, Any]) -> None:
    """A run that was broken off has ended as it would have ended, or it is said in one line why it cannot."""
    if told.code == 2 and thread["strategy"] in MAY_SAY_WHY_NOT:
        assert told.err.startswith("reflect: ")
        assert told.err.count("\n") == 1
        return
    assert told.code == (1 if thread["ends"]["status"] == "failed" else 0), told.err
    assert "(resumed)" in told.err
    ends = thread["ends"]["status"]
    unverified = ("answered", "exhausted") if ends == "solved" else ()  # 0.1.0 called these solved, too
    assert told.outcome in (ends, *unverified)
