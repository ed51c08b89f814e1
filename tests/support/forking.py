"""Runs modules as `python -m` does, in forks of a process that has imported the libraries: nothing else is shared.

`python -m tests.support.forking [package ...]` is that process. Each run imports the modules of these packages anew.
"""

import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol


class RunModule(Protocol):
    """Runs a module with arguments, in the environment of the caller's."""

    def __call__(self, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Return how it ended, with what it wrote."""
        ...


@contextmanager
def forking(folder: Path, *anew: str) -> Iterator[RunModule]:
    """Yield what runs the modules that a folder holds, in this folder.

    Args:
        folder: The project, or a copy of it.
        anew: Packages whose modules each run imports itself, since they may have changed.
    """
    command = [sys.executable, "-m", "tests.support.forking", *anew]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    with (
        TemporaryDirectory() as name,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process,
    ):
        requests, codes = process.stdin, process.stdout
        assert requests
        assert codes
        files = [Path(name, stream) for stream in ("stdout", "stderr")]

        def run(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
            request = [[module, *arguments], {**os.environ, "PYTHONPATH": str(folder)}, [*map(str, files)]]
            print(json.dumps(request), file=requests, flush=True)
            with ExitStack() as broken_off:  # by a test that takes too long: what it has started must not go on
                broken_off.callback(os.killpg, process.pid, signal.SIGKILL)
                code = int(codes.readline())
                broken_off.pop_all()
            return subprocess.CompletedProcess([module, *arguments], code, *(file.read_text() for file in files))

        try:
            yield run
        finally:
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    import hypothesis  # noqa: F401 - with all that the modules below import
    import pytest  # noqa: F401

    import tests.strategies  # noqa: F401

    packages = sys.argv[1:]
    for imported in [*sys.modules]:
        if imported.partition(".")[0] in packages:
            del sys.modules[imported]
    sys.dont_write_bytecode = True  # what is changed twice in a second at the same length would not be compiled again

    while line := sys.stdin.readline():
        if not (child := os.fork()):
            break
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()
    else:
        sys.exit()
    sys.argv, settings, outputs = json.loads(line)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, output in enumerate(outputs, 1):
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.clear()
    os.environ.update(settings)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
