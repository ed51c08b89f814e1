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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from threading import Timer
from typing import NamedTuple

from bench.options import parser_of
from bench.peers.environments import prepare, version
from bench.peers.lines.script import QUESTIONS, reply
from bench.peers.lines.tasks import TASKS
from bench.peers.measure import ROOT, last_line
from reflective_agents.testing.openai_server import OpenAIServer

HERE = Path(__file__).parent


LONGEST = 240
"""Most seconds that a task may take, with the imports before the first."""
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
    cells = {task.name: NO_WAY for task in TASKS}
    left = [task for task in TASKS if task.name in lines]
    while left:  # a task that fails ends the process, since it takes imports of seconds to begin another
        with OpenAIServer(reply).threaded() as server, _driver(str(python), library.module, server.base_url) as driver:
            for task in left:
                questions: list[object] = [*QUESTIONS[task.name]]
                if not library.peer:
                    questions = [{"messages": [["user", question]]} for question in questions]
                before = len(server.calls)
                outcome, problem = driver([task.name, *questions])
                calls = len(server.calls) - before
                right = not problem and task.done(outcome, calls)
                cells[task.name] = f"{lines[task.name]} ({calls})" if right else f"fails: {problem or outcome}"
                left = left[1:]
                if problem:
                    break
    return cells


@contextmanager
def _driver(python: str, module: str, url: str) -> Iterator[Callable[[Sequence[object]], tuple[object, str]]]:
    """Start a process that does the tasks of a module; what is yielded does one, and returns its outcome, or else what
    has ended the process."""
    with TemporaryDirectory() as home, TemporaryFile("w+", encoding="utf-8") as errors:
        # Nothing of the user's environment reaches a library: no keys, no settings, no home.
        names = {"PATH": os.environ["PATH"], "HOME": home, "PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}
        keys = {"OPENAI_BASE_URL": url, "OPENAI_API_BASE": url, "OPENAI_API_KEY": "test"}
        command = [python, "-c", "from bench.peers.lines.drive import main; main()", module]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=errors, text=True, cwd=home, env=names | keys
        ) as process:
            assert process.stdin
            assert process.stdout
            tasks, outcomes = process.stdin, process.stdout

            def do(line: Sequence[object]) -> tuple[object, str]:
                alarm = Timer(LONGEST, process.kill)
                alarm.start()
                print(json.dumps(line), file=tasks, flush=True)
                outcome = outcomes.readline()
                alarm.cancel()
                if outcome:
                    return json.loads(outcome), ""
                process.wait()
                errors.seek(0)
                return None, last_line(errors.read()) or f"it ended with {process.returncode}"

            yield do


def table(columns: dict[str, dict[str, str]]) -> str:
    """Return the table of what each library takes."""
    rows = [["task", *columns], ["---", *["--:"] * len(columns)]]
    rows += [[task.what, *(cells[task.name] for cells in columns.values())] for task in TASKS]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows).replace("| --- |", "|---|").replace(" --: |", "--:|")


def main() -> None:
    """Print the table."""
    options = parser_of("bench.peers.lines", __doc__).parse_args()
    libraries = LIBRARIES[:1] if options.quick else LIBRARIES
    print(table({_head(library): do_tasks(library) for library in libraries}))


def _head(library: Library) -> str:
    return f"{library.head} {version(library.peer)}" if library.peer else library.head


if __name__ == "__main__":
    main()
