"""Does eight tasks with this project and others, and prints how many lines and calls of the model each takes.

    python -m bench.peers.lines

Each library's module runs in a process of its own against the local server, and a task counts only if it was done.
What a library brings counts, and what its user brings (the tool, the check, the class) does not; nor do imports,
docstrings and blank lines.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.options import parser_of
from bench.peers.environments import folder, prepare, version
from bench.peers.lines.script import QUESTIONS, reply
from bench.peers.lines.tasks import TASKS
from bench.peers.measure import ROOT, last_line
from reflective_agents.testing.openai_server import OpenAIServer

HERE = Path(__file__).parent


NO_WAY = "no way"
"""The cell of a task that a library has nothing for."""


class Library(NamedTuple):
    """A column: its head, the module with its tasks, and its pins, or None for this project's own environment."""

    head: str
    module: str
    peer: str | None = None


LIBRARIES = [
    Library("this project", "ours"),
    Library("create_agent", "agent"),
    Library("deepagents", "deep"),
    Library("DSPy", "programs", "dspy"),
    Library("its_hub", "hub", "its-hub"),
]


def count(module: str) -> dict[str, int]:
    """Count the lines of code of each function of a module, without its head."""
    source = (HERE / f"{module}.py").read_text("utf-8")
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    lines = source.splitlines()
    return {
        node.name: sum(bool(line.strip()) for line in lines[_begin(node.body[0]) - 1 : node.end_lineno])
        for node in functions
    }


def _begin(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def do_tasks(library: Library) -> dict[str, str]:
    """Do all tasks of a library; returns its cells: lines of code, or why a task was not done."""
    python, lines = prepare(library.peer) if library.peer else sys.executable, count(library.module)
    cells = {}
    for task in TASKS:
        if task.name not in lines:
            cells[task.name] = NO_WAY
            continue
        with OpenAIServer(reply).threaded() as server, TemporaryDirectory() as home:
            questions: list[object] = [*QUESTIONS[task.name]]
            if not library.peer:
                questions = [{"messages": [["user", question]]} for question in questions]
            done = _run(str(python), library.module, [task.name, *questions], server.base_url, home)
            outcome = json.loads(done.stdout) if done.stdout else None
            calls = len(server.calls)
            right = outcome is not None and task.done(outcome, calls)
        cells[task.name] = f"{lines[task.name]} ({calls})" if right else f"fails: {last_line(done.stderr) or outcome}"
    return cells


def _run(python: str, module: str, line: Sequence[object], url: str, home: str) -> "subprocess.CompletedProcess[str]":
    # Nothing of the user's environment reaches a library: no keys, no settings, no home.
    names = {"PATH": os.environ["PATH"], "HOME": home, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}
    keys = {"OPENAI_BASE_URL": url, "OPENAI_API_BASE": url, "OPENAI_API_KEY": "test"}
    command = [python, "-c", "from bench.peers.lines.drive import main; main()", module]
    return subprocess.run(
        command, input=json.dumps(line), capture_output=True, text=True, cwd=home, env=names | keys, timeout=120
    )


def table(columns: dict[str, dict[str, str]]) -> str:
    """Return the table of what each library takes."""
    rows = [["task", *columns], ["---", *["--:"] * len(columns)]]
    rows += [[task.what, *(cells[task.name] for cells in columns.values())] for task in TASKS]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace("| --- |", "|---|").replace(" --: |", "--:|")


def main() -> None:
    """Print the table."""
    options = parser_of("bench.peers.lines", __doc__).parse_args()
    prepared = [
        library
        for library in LIBRARIES
        if not (options.quick and library.peer) or (folder(str(library.peer)) / "complete").exists()
    ]
    print(table({_head(library): do_tasks(library) for library in prepared}))


def _head(library: Library) -> str:
    return f"{library.head} {version(library.peer)}" if library.peer else library.head


if __name__ == "__main__":
    main()
