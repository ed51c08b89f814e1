"""What does not fit a JSON schema: compiled and checked in a process that is ended if it takes too long or too much.

For every schema and every pattern that a caller may have written. A pattern alone is a schema, too:
`await schema_faults({"type": "string", "pattern": "^[A-Z]+$"}, text)`; it is matched in linear time.
"""

import asyncio
import atexit
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE

from pydantic import JsonValue

from reflective_agents.state.callers_schemas import PATTERN_BYTES
from reflective_agents.state.forks import after_fork
from reflective_agents.state.json_types import JsonMapping

SECONDS = 1.0
"""Processor time that a check may take."""
MEGABYTES = 512
"""Memory that it may take."""
PROCESSES = 2
"""Checks at once; others wait for them."""


async def schema_faults(schema: JsonMapping, value: JsonValue) -> list[str]:
    """Say in words what does not fit a schema, while the event loop goes on.

    Args:
        schema: A JSON schema of the draft 2020-12; no reference leaves it. `state.callers_schemas.expanded` says before
            a run whether it is valid.
        value: What has to fit.

    Returns:
        The first five faults; nothing if all fits. A check that takes more than a second of processor time or half a
        gigabyte is a fault, and so is a schema that cannot be compiled.

    Raises:
        ValueError, RecursionError: if the value is no JSON.
    """
    request = json.dumps([schema, value]).encode() + b"\n"
    return await asyncio.get_running_loop().run_in_executor(_checkers.threads, _checkers.check, request)


class _Checkers:
    """Threads, each of which has a process to ask. They are begun when they are needed, and stay."""

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(PROCESSES, "schema-check")
        self._own, self._processes = threading.local(), list[_Process]()
        atexit.register(self._end)

    def check(self, request: bytes) -> list[str]:
        """Let this thread's process answer."""
        process: _Process = getattr(self._own, "process", None) or self._start()
        if process.poll() is not None:
            process = self._replace(process)
        assert process.stdin is not None
        assert process.stdout is not None
        # The process has died since `poll`: that it gives no answer shows below.
        with suppress(BrokenPipeError):
            process.stdin.write(request)
            process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            faults: list[str] = json.loads(answer)
            return faults
        self._replace(process)
        return [f"output: to check it takes more than {SECONDS:g} seconds or {MEGABYTES} MB"]

    def _start(self) -> "_Process":
        bounds = (str(SECONDS), str(MEGABYTES), str(PATTERN_BYTES))
        import jsonschema_rs  # late: few runs check anything

        # Without site-packages it starts faster; -P keeps the modules beside the program from
        # hiding others.
        program = [sys.executable, "-S", "-P", str(Path(__file__).with_name("schema_program.py")), *bounds]
        library = str(Path(jsonschema_rs.__file__).parents[1])
        process = subprocess.Popen(program, env={"PYTHONPATH": library}, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        self._own.process = process
        self._processes.append(process)
        return process

    def _replace(self, process: "_Process") -> "_Process":
        process.communicate()
        self._processes.remove(process)
        return self._start()

    def _end(self) -> None:
        for process in self._processes:
            process.communicate()

    def renewed(self) -> "_Checkers":
        """Return others for a forked process, which has none of these threads and must not end these processes."""
        atexit.unregister(self._end)
        _inherited.append(self)
        return _Checkers()


def _renew() -> None:
    global _checkers
    _checkers = _checkers.renewed()


_Process = subprocess.Popen[bytes]
_checkers, _inherited = _Checkers(), list[_Checkers]()
after_fork(_renew)
