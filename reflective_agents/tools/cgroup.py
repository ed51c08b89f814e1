"""Control groups of the sandbox's own, where this process may make some: the kernel then limits all of it together.

They are made in the group of this process where it is delegated (cgroup v2) and nobody else is in it, as under
`systemd-run --user --scope -p Delegate=yes`; or in the folders that REFLECT_CGROUP names, of either version. Where none
can be made, or entered, a program runs without.
"""

import asyncio
import functools
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

VARIABLE = "REFLECT_CGROUP"
PREFIX, HOST = "reflect-", "reflect-host"
"""What the names of the groups begin with, and the one that holds this process: next to groups there may be none."""
SPARE = 32 << 20
"""Bytes beyond the limit, for the files and the sandbox itself: what grows slowly, the watch ends with a reason."""
HELPERS = 8
"""Processes of the sandbox itself."""
CONTROLLERS = {"memory", "pids"}
# 0 stands for the shell itself, which then becomes the command. A group that refuses it is left out.
_ENTER = """while [ "$1" != -- ]; do { echo 0 > "$1"/cgroup.procs; } 2>/dev/null; shift; done; shift; exec "$@" """
_numbers = count()


@asynccontextmanager
async def group(enabled: bool, memory: int, processes: int) -> AsyncIterator[list[Path]]:
    """Make groups with these limits, one in each hierarchy; at the end of the block they are removed.

    Yields:
        Their folders; none where none can be made, or it is not enabled.
    """
    made = await asyncio.to_thread(_make, memory + SPARE, processes + HELPERS) if enabled else []
    try:
        yield made
    finally:
        if made:
            # A cancelled run would leave its groups behind.
            await asyncio.shield(asyncio.to_thread(remove, made))


def _make(memory: int, processes: int) -> list[Path]:
    made = []
    for parent in _parents():
        folder = parent / f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        with suppress(OSError):
            folder.mkdir()
            made.append(folder)
            _limit(folder, memory, processes)
    return made


def entering(folders: Sequence[Path]) -> list[str]:
    """Return what stands in front of a command that is to run in these groups, with all that it starts."""
    return ["/bin/sh", "-c", _ENTER, "sh", *map(str, folders), "--"] if folders else []


def overrun(folders: Sequence[Path]) -> bool:
    """Tell whether the kernel has killed a process of these groups for want of memory."""
    events = [folder / "memory.events" for folder in folders]
    older = [folder / "memory.oom_control" for folder in folders]  # of version 1
    return any(map(_counts_killed, [*events, *older]))


def _counts_killed(file: Path) -> bool:
    with suppress(OSError):
        for line in file.read_text().splitlines():
            if line.startswith("oom_kill ") and line.split()[1] != "0":
                return True
    return False


def remove(folders: Sequence[Path], patience: float = 1.0) -> None:
    """Remove groups as soon as their last process is gone; blocks for so many seconds at most."""
    deadline = time.monotonic() + patience
    for folder in folders:
        while not _removed(folder):
            if time.monotonic() > deadline:
                break
            time.sleep(0.002)


def _removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def _limit(folder: Path, memory: int, processes: int) -> None:
    """Write the limits, of which each version and hierarchy knows some."""
    limits = {"memory.max": memory, "memory.swap.max": 0, "pids.max": processes}
    # In this order: version 1 refuses a limit with swap that is below the one without.
    limits |= {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory}
    for name, most in limits.items():
        if (folder / name).exists():
            (folder / name).write_text(str(most))


@functools.cache
def _parents() -> tuple[Path, ...]:
    """Return the folders in which this process makes groups; clears away what killed processes have left in them."""
    found = [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]
    if not found:
        with suppress(OSError):
            kernel = Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text()
            found = [folder for folder in map(prepare, own_group(*kernel)) if folder]
    for folder in found:
        for left in folder.glob(f"{PREFIX}[0-9]*-*"):
            # Named by the process that made it; groups of others that live are in use.
            if not Path("/proc", left.name.split("-")[1]).exists():
                remove([left], 0)
    return tuple(found)


def own_group(groups: str, mounts: str) -> list[Path]:
    """Return the folder of this process's group of version 2, by what the kernel tells of it and of the mounts."""
    own = Path()
    for line in groups.splitlines():
        if line.startswith("0::"):
            own = Path(line.removeprefix("0::"))
            break
    folders: list[Path] = []
    for line in mounts.splitlines():
        if " - cgroup2 " in line:
            root, folder = line.split()[3:5]
            if own.is_relative_to(root):
                folders.append(Path(folder, own.relative_to(root)))
    return folders


def prepare(own: Path) -> Path | None:
    """Return the group in which others can be made and limited: this one, or the one around it where it was made here.

    A group whose members are limited holds no process itself, so this process moves to a group in it, if it is alone.
    """
    own = own.parent if own.name == HOST else own
    with suppress(OSError):
        if set((own / "cgroup.subtree_control").read_text().split()) >= CONTROLLERS:
            return own
        # Another process in the group would be left in a place where the kernel allows none.
        alone = (own / "cgroup.procs").read_text().split() == [str(os.getpid())]
        if alone and set((own / "cgroup.controllers").read_text().split()) >= CONTROLLERS:
            (own / HOST).mkdir(exist_ok=True)
            (own / HOST / "cgroup.procs").write_text("0")
            (own / "cgroup.subtree_control").write_text("+memory +pids")
            return own
    return None
