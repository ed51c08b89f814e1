"""Runs every search against the same server in the same run, and notes what it took."""

import asyncio
import os
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from bench.peers.environments import prepare
from bench.peers.figures import Comparison, Figures, Round
from bench.peers.searches import Entry
from bench.peers.server import Conditions, PeerServer, serving
from bench.scripts import QUESTION

NORMAL = Conditions(latency=0.1)
FAULTY = Conditions(latency=0.01, failing=10)
TIMEOUT = 120
"""Most seconds that one run may take."""
DRIVERS = Path(__file__).parent / "drivers"
ROOT = Path(__file__).parents[2]


def measure_peers(entries: Sequence[Entry], show: Callable[[str, int], None]) -> Comparison:
    """Measure searches. What cannot be installed or run is left out, with the reason.

    Args:
        entries: The searches.
        show: Is told what happens now, and how many of the entries are done.
    """
    comparison = Comparison()
    with serving() as server:
        for done, entry in enumerate(entries):
            name = entry.peer or "this project"
            if name in comparison.left_out:
                continue
            try:
                show(f"preparing {name}", done)
                python = prepare(entry.peer) if entry.peer else Path(sys.executable)
                show(f"{name}: {entry.what}", done)
                comparison.figures.append(asyncio.run(measure(entry, python, server)))
            except subprocess.CalledProcessError as fault:
                comparison.left_out[name] = f"not installed: {last_line(fault.stderr)}"
            except (ValueError, OSError, TimeoutError, subprocess.TimeoutExpired) as fault:
                comparison.left_out[f"{name}, {entry.what}"] = last_line(str(fault)) or type(fault).__name__
    return comparison


async def measure(entry: Entry, python: Path, server: PeerServer) -> Figures:
    """Run a search three times in one process: to warm up, to be measured, and with failing requests.

    Raises:
        ValueError: if the driver fails where no request does.
        TimeoutError: if a run takes too long.
    """
    with TemporaryDirectory() as home, TemporaryFile("w+") as complaints:
        process = await _start(entry, python, server.base_url, home, complaints)
        try:
            server.change(NORMAL)
            await _run(process, complaints)
            before = server.change(NORMAL)
            run = await _run(process, complaints)
            sent = server.change(FAULTY) - before
            if not run.finished or not sent.calls:
                raise ValueError(_read_last_line(complaints) or "it asked nothing")
            faulty = await _run(process, complaints)
        finally:
            await _end(process)
        return Figures(entry, run, sent, faulty, "" if faulty.finished else _read_last_line(complaints))


def last_line(text: str) -> str:
    """Return the last line of a text that is not blank; empty if there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


async def _start(entry: Entry, python: Path, url: str, home: str, complaints: IO[str]) -> Process:
    # Nothing of the user's environment reaches a peer: no keys, no settings, no proxy, no home.
    variables = {"PATH": os.environ["PATH"], "HOME": home, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "test"}
    if entry.peer is None:
        variables |= {"PYTHONPATH": str(ROOT), "LANGSMITH_TRACING": "false"}
    command = [str(python), str(DRIVERS / "drive.py"), entry.driver, entry.setting, QUESTION["messages"][0][1]]
    return await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=complaints, cwd=home, env=variables
    )


async def _run(process: Process, complaints: IO[str]) -> Round:
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"\n")
    async with asyncio.timeout(TIMEOUT):
        line = await process.stdout.readline()
    if not line:
        raise ValueError(_read_last_line(complaints))
    return Round.parse(line.decode())


async def _end(process: Process) -> None:
    assert process.stdin
    process.stdin.close()
    try:
        async with asyncio.timeout(10):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _read_last_line(complaints: IO[str]) -> str:
    complaints.seek(0)
    return last_line(complaints.read())
