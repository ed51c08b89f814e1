"""A sandbox for programs that a model wrote: bubblewrap, or nothing unless plain processes are allowed.

What a program meets inside: every namespace its own, no network, no environment, no file but Python's and its
libraries' (read only) and a small folder in memory, a user without rights, a filter of system calls, limits on memory,
processor time, processes, files and their size; and the clock, outside. Python packages are not offered, the standard
library is. The kernel limits the memory of each process; that of all together, and the number of files, are watched.
Where a control group can be made, the kernel limits all together, too.

The limit on processes does not bind the superuser, whatever a namespace calls him. For him the sandbox is therefore set
up in two stages: one shows the files, which others might not be able to reach; then the rights are given up; then
everything is unshared as for everybody. The first stage has its own process numbers, so that all processes end when it
does: after the change of user, the death of a parent is no longer signalled.
"""

import asyncio
import functools
import json
import logging
import math
import os
import platform
import shutil
import socket
import subprocess
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reflective_agents.state.errors import SandboxMissing
from reflective_agents.tools.cgroup import entering, group
from reflective_agents.tools.seccomp import seccomp_filter
from reflective_agents.tools.system import PREFIX, PYTHON, system_files
from reflective_agents.tools.watch import kill, watch

MAX_PROCESSES = 16
"""Processes and threads in a sandbox, its own first one among them."""
MAX_FILE_BYTES = 4_000_000
"""Size of a file that a program writes; its folder holds four times as much."""
MAX_FILES = 1000
"""Files and folders in its folder."""
MAX_OUTPUT_BYTES = 100_000
"""What is kept of each of a program's outputs; the rest is read and dropped."""
GRACE_SECONDS = 0.1
"""What a process has to end by itself, after the block that needed it has come to its end."""
NOBODY = 65534
"""The user as whom programs run."""

_INSIDE = {
    f"reflective_agents.tools.inside.{name}": (Path(__file__).parent / "inside" / f"{name}.py").read_text("utf-8")
    for name in ("plain", "program", "judge", "main")
}
_LOADER = f"""import sys, types
for name, text in {_INSIDE!r}.items():
    sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec"), vars(sys.modules[name]))
sys.modules[name].main(*sys.argv[1:])"""
"""Handed over as text: no file of the project need be readable to the user in the sandbox."""

_log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """What each process may use."""

    seconds: float
    """Processor time; rounded up, and one more."""
    memory_mb: int
    """Memory in MiB; in a sandbox, of all its processes together."""


@dataclass(frozen=True)
class RunResult:
    """How a program ran."""

    exit_code: int | None
    """Exit code, or 128 and the number of the signal that ended it; None if it ran out of time."""
    stdout: str
    stderr: str
    timed_out: bool
    sandboxed: bool
    """False if it ran as a plain process, without protection."""


def sandbox_available() -> tuple[bool, str]:
    """Say whether programs can be run in a sandbox on this machine. Starts one, the first time; blocks meanwhile.

    Returns:
        Whether, and why not or by what.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return False, "bubblewrap (the command bwrap) is not installed"
    return _probe(bwrap)


@functools.cache
def _probe(bwrap: str) -> tuple[bool, str]:
    if seccomp_filter() is None:
        return False, f"there is no filter of system calls for {platform.machine()}"
    try:
        system_files()
        with _filter() as descriptor:
            command = [*_enclose(bwrap, descriptor), *_runner("probe", Limits(5, 256), processes=True)]
            subprocess.run(
                command, env={}, stdin=DEVNULL, capture_output=True, check=True, timeout=20, pass_fds=[descriptor]
            )
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").split("\n")
        return False, f"{bwrap} cannot set up a sandbox here: {' '.join(lines).strip() or error}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, f"{bwrap} cannot set up a sandbox here: {error}"
    return True, bwrap


async def choose_enclosure(unsafe_subprocess: bool) -> str:
    """Return the path of bubblewrap; nothing, if there is no sandbox and plain processes are allowed.

    Raises:
        SandboxMissing: if there is no sandbox and plain processes are not allowed.
    """
    available, why = await asyncio.to_thread(sandbox_available)
    if available:
        return why
    if not unsafe_subprocess:
        raise SandboxMissing(
            f"Programs are not run, because there is no sandbox: {why}. Install it (apt-get install bubblewrap), or "
            "allow plain processes, which can do whatever you can: in settings with unsafe_code=True (--unsafe-code), "
            "in a tool with unsafe_subprocess=True."
        )
    _log.warning("Running a program WITHOUT a sandbox, as allowed: %s.", why)
    return ""


@contextmanager
def _filter() -> Iterator[int]:
    """Return a descriptor from which the filter of system calls can be read, once."""
    reader, writer = os.pipe()
    try:
        with open(writer, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(seccomp_filter() or b"")  # less than a pipe holds
        yield reader
    finally:
        os.close(reader)


def _enclose(bwrap: str, filter_descriptor: int) -> list[str]:
    """Return the command in front of a program's own that encloses it."""
    everybody = [
        bwrap, "--unshare-user", "--unshare-all", "--disable-userns", "--die-with-parent", "--new-session",
        "--clearenv", "--cap-drop", "ALL", "--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox",
        "--seccomp", str(filter_descriptor), "--size", str(4 * MAX_FILE_BYTES), "--tmpfs", "/tmp", *system_files(),
        "--proc", "/proc", *_NO_KEYS, "--dev", "/dev", "--remount-ro", "/dev", "--chdir", "/tmp", "--remount-ro", "/",
        "--",
    ]  # fmt: skip
    if os.geteuid() != 0:
        return everybody
    files = ["--dir", "/tmp", *_all_files(), "--bind", "/proc", "/proc", "--dev-bind", "/dev", "/dev"]
    give_up = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    return [bwrap, "--unshare-pid", "--die-with-parent", *files, "--remount-ro", "/", "--", *give_up, *everybody]


_NO_KEYS = ("--ro-bind-try", "/dev/null", "/proc/keys", "--ro-bind-try", "/dev/null", "/proc/key-users")
"""The host's keys cannot be used, as the filter refuses that; so are they hidden."""


@functools.cache
def _all_files() -> tuple[str, ...]:
    """Return the options that show the first stage, which only sets up the second, the system's files and Python's."""
    options = ["--ro-bind", "/usr", "/usr"]
    for folder in map(Path, ("/bin", "/sbin", "/lib", "/lib32", "/lib64")):
        if folder.is_symlink():
            options += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            options += ["--ro-bind", str(folder), str(folder)]
    if not PREFIX.is_relative_to("/usr"):
        for parent in reversed(PREFIX.parents[:-1]):
            options += ["--perms", "0755", "--dir", str(parent)]
        options += ["--ro-bind", str(PREFIX), str(PREFIX)]
    return tuple(options)


def _runner(role: str, limits: Limits, *peer: str, processes: bool) -> list[str]:
    bounds = {
        # Beyond the clock's limit, which ends a program with a better reason.
        "CPU": math.ceil(limits.seconds) + 1,
        "AS": limits.memory_mb << 20,
        "FSIZE": MAX_FILE_BYTES,
        "NOFILE": 32,
        "CORE": 0,
    }
    if processes:  # outside a sandbox, all that its user runs would be counted
        bounds["NPROC"] = MAX_PROCESSES
    return [str(PYTHON), "-I", "-S", "-c", _LOADER, role, json.dumps(bounds), *peer]


@asynccontextmanager
async def wire() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, socket.socket]]:
    """Make a connection to a process: what reads and writes here, and the socket to be handed over."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    try:
        yield reader, writer, theirs
    finally:
        theirs.close()
        # Closing would first wait for the other side to read what is left.
        writer.transport.abort()
        with suppress(OSError):  # what was not read over there
            await writer.wait_closed()


@asynccontextmanager
async def start(
    role: str,
    enclosure: str,
    stdin: socket.socket,
    stdout: socket.socket | None = None,
    stderr: socket.socket | None = None,
    *,
    peer: socket.socket | None = None,
    limits: Limits,
) -> AsyncIterator[tuple[Process, "asyncio.Task[str]"]]:
    """Start the runner in a role. At the end of the block, whatever its cause, its processes are killed.

    Args:
        role: what the runner does; see there.
        enclosure: what `choose_enclosure` returned.
        stdin: what it reads from. This socket and the others are closed here once the process has them.
        stdout: what it writes to; None for nowhere.
        stderr: what it writes errors to; None for nowhere.
        peer: one more socket that it gets.
        limits: what it may use. The clock is the caller's affair.

    Returns:
        The process, and a task that ends, with the reason, if it had to be killed because it used too much.
    """
    extra = [peer.fileno()] if peer else []
    async with group(bool(enclosure), limits.memory_mb << 20, MAX_PROCESSES) as folders:
        with _filter() as descriptor:
            around = [*entering(folders), *_enclose(enclosure, descriptor)] if enclosure else []
            process = await asyncio.create_subprocess_exec(
                *around,
                *_runner(role, limits, *map(str, extra), processes=bool(enclosure)),
                stdin=stdin.fileno(),
                stdout=stdout.fileno() if stdout else DEVNULL,
                stderr=stderr.fileno() if stderr else DEVNULL,
                pass_fds=[*extra, descriptor],
                env={},
                cwd="/",
                # A group of its own, so that it can be killed with all that it starts.
                start_new_session=True,
            )
        watcher = asyncio.create_task(watch(process.pid, limits.memory_mb << 20, MAX_FILES, folders))
        try:
            for handed_over in (stdin, stdout, stderr, peer):
                if handed_over:
                    handed_over.close()
            yield process, watcher
            with suppress(TimeoutError):  # most end by themselves, and then nobody has to look for their descendants
                await asyncio.wait_for(process.wait(), GRACE_SECONDS)
        finally:
            watcher.cancel()
            if process.returncode is None or not enclosure:  # a sandbox that has ended has taken all with it
                # Also where this task is cancelled: nobody else ends what the program has started.
                await asyncio.shield(asyncio.to_thread(kill, process.pid))
            await process.wait()


def message(content: object) -> bytes:
    """Return the form in which the runner reads a message."""
    text = json.dumps(content).encode()
    return len(text).to_bytes(4, "big") + text


async def run_program(
    code: str,
    stdin: str = "",
    *,
    timeout: float = 10.0,  # noqa: ASYNC109 - running out of time is a result here
    memory_mb: int = 512,
    unsafe_subprocess: bool = False,
) -> RunResult:
    """Run a Python program.

    Args:
        code: its text.
        stdin: its input.
        timeout: seconds until it is killed, above 0.
        memory_mb: memory that all its processes together may have, in MiB.
        unsafe_subprocess: whether a plain process may be used where there is no sandbox.

    Raises:
        SandboxMissing: if there is no sandbox and plain processes are not allowed.
    """
    enclosure = await choose_enclosure(unsafe_subprocess)
    out, err, timed_out = bytearray(), bytearray(), False
    async with wire() as (reader, writer, theirs), wire() as (errors, _, their_errors):
        limits = Limits(timeout, memory_mb)
        async with start("run", enclosure, theirs, theirs, their_errors, limits=limits) as (process, watcher):
            writer.write(message({"program": code}) + stdin.encode(errors="replace"))
            writer.write_eof()
            try:
                async with asyncio.timeout(timeout):
                    await asyncio.gather(_keep(reader, out), _keep(errors, err))
                    await process.wait()
            except TimeoutError:
                timed_out = True
            if watcher.done() and not watcher.cancelled():
                err += f"{watcher.result()}\n".encode()
    status = process.returncode or 0
    if status < 0:  # as a shell has it
        status = 128 - status
    exit_code = None if timed_out else status
    return RunResult(exit_code, out.decode(errors="replace"), err.decode(errors="replace"), timed_out, bool(enclosure))


async def _keep(reader: asyncio.StreamReader, beginning: bytearray) -> None:
    """Read to the end, and keep the beginning."""
    with suppress(ConnectionError):  # an end like any other
        while chunk := await reader.read(1 << 16):
            beginning += chunk[: MAX_OUTPUT_BYTES - len(beginning)]
