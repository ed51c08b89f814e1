"""Watching what the processes of a sandbox use together, and ending them.

The kernel limits each process by itself. A control group, which could limit all, belongs to the administrator of a
machine and is seldom handed on, least of all in a container; so their memory is added up from outside, time and again.
Between two looks it can grow beyond the limit by what is written in that time, unless there is such a group after all.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from reflective_agents.tools.cgroup import overrun

EVERY_SECONDS = 0.05
_PROC = Path("/proc")
_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
"""What reading a process brings that has ended, or is only being set up."""


async def watch(pid: int, memory: int, files: int, groups: Sequence[Path] = ()) -> str:
    """Look at a process and its descendants until they use too much; kill them then.

    Args:
        pid: the process.
        memory: bytes that all may have together; what they share is counted once.
        files: files and folders in their /tmp.
        groups: their control groups, if they have some.

    Returns:
        Why they were killed.
    """
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        excess = await asyncio.to_thread(_excess, pid, memory, files, groups)
        if excess:
            await asyncio.to_thread(kill, pid)
            return excess


def _excess(pid: int, memory: int, files: int, groups: Sequence[Path]) -> str:
    pids = family(pid)
    # The cheap sum is never below the exact one, for which the kernel walks through all pages.
    if overrun(groups) or (sum(map(_resident, pids)) > memory and sum(map(_share, pids)) > memory):
        return f"Killed: its processes used more than {memory >> 20} MiB of memory together."
    # The last one is the innermost: the first ones, which set the sandbox up, see another /tmp.
    if _files(pids[-1]) > files:
        return f"Killed: it made more than {files} files."
    return ""


def _resident(pid: int) -> int:
    """Return the bytes of a process; cheap, but what several share counts for each."""
    with suppress(*_GONE):
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _share(pid: int) -> int:
    """Return the bytes of a process that no file holds, and of shared ones its part."""
    with suppress(*_GONE):
        kilobytes = 0
        for line in (_PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                kilobytes += int(line.split()[1])
        return kilobytes << 10
    return _resident(pid)


def _files(pid: int) -> int:
    with suppress(*_GONE):
        folder = _PROC / str(pid) / "root/tmp"
        if folder.stat().st_dev != Path("/tmp").stat().st_dev:  # while it is set up, it is this machine's
            stats = os.statvfs(folder)
            return stats.f_files - stats.f_ffree
    return 0


def family(pid: int) -> list[int]:
    """Return a process and all its descendants, parents first."""
    pids = [pid]
    for parent in pids:
        pids += _children(parent)
    return pids


def kill(pid: int) -> None:
    """Kill a process with its group and all its descendants.

    A sandbox that is only starting does not yet die with its parent. Each process is stopped before its children are
    listed, so that none is missed.
    """
    doomed = [pid]
    for parent in doomed:
        with suppress(ProcessLookupError):
            os.kill(parent, signal.SIGSTOP)
        doomed += _children(parent)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    for victim in doomed:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)


def _children(parent: int) -> list[int]:
    with suppress(*_GONE):
        threads = list((_PROC / str(parent) / "task").iterdir())
        children = " ".join((thread / "children").read_text() for thread in threads)
        return [int(child) for child in children.split()]
    # Not every kernel is built with lists of children.
    return [] if Path("/proc/thread-self/children").exists() else _listed_children(parent)


def _listed_children(parent: int) -> list[int]:
    """Look through all processes, where the kernel does not list the children of one."""
    children = []
    for entry in _PROC.glob("[0-9]*/stat"):
        with suppress(*_GONE):
            # The name of the program, in brackets, may hold anything; the parent is the second field after it.
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == parent:
                children.append(int(entry.parent.name))
    return children
