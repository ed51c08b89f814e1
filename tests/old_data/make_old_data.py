"""Makes the data that later versions must be able to read: see the README in the folder that it makes.

    python -m tests.old_data.make_old_data v1

It writes what the version it runs with writes, and never into a folder that is there already.
"""

import asyncio
import json
import lzma
import os
import re
import shutil
import sqlite3
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from reflective_agents.cli.main import main
from reflective_agents.cli.threads import load, open_saver
from reflective_agents.state.memories import new_memory
from reflective_agents.state.settings import settings_of
from tests.old_data.reading import read_memories, read_threads

ROOT = Path(__file__).parent.parent.parent
KNOWN = "Why is reflection useful in AI?"
UNKNOWN = "Who won the chess championship of 1972?"
SENTENCES = {
    "My sister Ada lives in Turin and plays the cello.": 6,
    "I like to eat plum cake, most of all with cream.": 3,
    "The train to Turin leaves at 7:15 from platform 4.": 4,
}
FIRST_DAY = 1_790_000_000.0
COMMANDS = {
    "finished-lats": ["run", "lats", UNKNOWN, "--n", "2", "--max-expansions", "4"],
    "finished-team": ["run", "team", KNOWN, "--max-rounds", "1"],
    "waiting-reflection": ["run", "reflection", KNOWN, "--critic", "human"],
}
STOPPED = {"stopped-lats": ("lats", "expand", UNKNOWN), "stopped-plan": ("plan", "plan", KNOWN)}
"""Runs that were broken off: the strategy, the node after which, and the question."""
EVALUATION = ["eval", "react", "arithmetic.jsonl", "--limit", "3", "--max-actions", "2", "--concurrency", "1"]
EVALUATION += ["--max-repeats", "3"]  # the default then: with another one it would be another run


def make(target: Path) -> None:
    """Make everything."""
    with TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        home.mkdir()
        own = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        ours = {"REFLECT_HOME": str(home), "REFLECT_CACHE_DIR": f"{scratch}/cache", "REFLECT_EMBEDDINGS": "lexical"}
        with patch.dict(os.environ, {**own, **ours, "LANGGRAPH_STRICT_MSGPACK": "true"}, clear=True):
            os.chdir(home)
            shutil.copy(ROOT / "reflective_agents" / "environments" / "data" / "arithmetic.jsonl", home)
            for thread, command in COMMANDS.items():
                reflect(*command, "--thread", thread)
            asyncio.run(stop())
            remember(home)
            summary = evaluate(home)
            expected: dict[str, Any] = {"threads": asyncio.run(read_threads()), "summary": summary}
        pack(home, target)
        with patch.dict(os.environ, {**own, **ours}, clear=True):  # to retrieve memories changes them
            expected["memories"] = asyncio.run(read_memories())
    (target / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", "utf-8")


def reflect(*arguments: str) -> str:
    """Run the command, and return what it writes on stdout."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(list(arguments))
    assert code in (0, 3), err.getvalue()
    return out.getvalue()


async def stop() -> None:
    """Break runs off after a node, as Python can."""
    async with open_saver() as saver:
        for thread, (strategy, node, text) in STOPPED.items():
            graph = load(strategy, saver)
            graph.interrupt_after_nodes = [node]
            context = settings_of(strategy)(model="offline", search="local")  # type: ignore[call-arg]
            question: Any = {"messages": [("user", text)]}
            config: Any = {"configurable": {"thread_id": thread}, "metadata": {"strategy": strategy}}
            await graph.ainvoke(question, config, context=context)


def remember(home: Path) -> None:
    """Remember what a user said on some days and reflect on it, and learn a lesson from a run that failed."""
    days = enumerate(SENTENCES.items())
    memories = [new_memory(text, created=FIRST_DAY + 86_400 * day, importance=i, key=text) for day, (text, i) in days]
    file = home.parent / "sentences.jsonl"
    file.write_text("".join(json.dumps(memory) + "\n" for memory in memories))
    reflect("memory", "import", str(file), "--user", "ada")
    reflect("run", "memory", "Where does my sister live?", "--user", "ada", "--reflect-at", "1", "--thread", "memory")
    reflect("run", "reflexion", UNKNOWN, "--experience", "chess", "--max-rounds", "2", "--thread", "lesson")


def evaluate(home: Path) -> Any:
    """Evaluate three tasks, and leave the results as a power cut would have left them while the last was written."""
    summary = json.loads(reflect(*EVALUATION, "--json"))
    [results] = home.glob("evals/*/results.jsonl")
    results.write_bytes(results.read_bytes()[:-50])
    return summary


def pack(home: Path, target: Path) -> None:
    """Put everything into the target, and see that it names nothing of this machine."""
    target.mkdir()
    shutil.copy(home / "arithmetic.jsonl", target)
    shutil.copytree(home / "evals", target / "evals", ignore=shutil.ignore_patterns("lock"))
    for name in ("threads.sqlite", "memory.sqlite"):
        connection = sqlite3.connect(home / name)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        data = (home / name).read_bytes()
        assert not re.search(rb"/(tmp|work|home|root)/", data), name
        (target / f"{name}.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    make(Path(__file__).parent.absolute() / sys.argv[1])
