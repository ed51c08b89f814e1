"""Control groups: made, entered, limiting and removed where that is possible; and nothing lost where it is not."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reflective_agents.tools import cgroup, watch
from reflective_agents.tools.sandbox import run_program

MOUNTED = [Path("/sys/fs/cgroup") / name for name in ("memory", "pids")]


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the variable be read anew."""
    cgroup._parents.cache_clear()
    monkeypatch.delenv(cgroup.VARIABLE, raising=False)
    yield
    cgroup._parents.cache_clear()


@pytest.fixture
def handed_over(named: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Hand over a folder of each hierarchy of version 1."""
    folders = [mounted / f"test-of-the-sandbox-{os.getpid()}" for mounted in MOUNTED]
    try:
        for folder in folders:
            folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control groups of version 1 can be made here: {error}")
    monkeypatch.setenv(cgroup.VARIABLE, os.pathsep.join(map(str, folders)))
    yield folders
    cgroup.remove(folders)


@pytest.mark.sandbox
@pytest.mark.hostile
async def test_a_program_runs_in_groups_of_its_own_that_are_removed(handed_over: list[Path]) -> None:
    run = asyncio.create_task(run_program("import time; time.sleep(1); print(1)", timeout=20, memory_mb=256))
    inside: list[Path] = []
    while not inside and not run.done():
        await asyncio.sleep(0.02)
        inside = [file for folder in handed_over for file in folder.glob("*/cgroup.procs") if file.read_text()]
    assert {file.parents[2] for file in inside} <= set(MOUNTED)
    assert inside
    assert (await run).stdout == "1\n"
    assert [group for folder in handed_over for group in folder.glob("*/")] == []


@pytest.mark.thorough
@pytest.mark.sandbox
@pytest.mark.hostile
async def test_the_kernel_ends_what_grows_faster_than_is_looked(
    handed_over: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "EVERY_SECONDS", 1000)
    code = """
import os
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(b"x") * (120 << 20)
        import time; time.sleep(2)
        os._exit(0)
print(sorted(os.wait()[1] for _ in range(4))[-1])
"""
    result = await run_program(code, timeout=60, memory_mb=256)
    assert (result.stdout, result.exit_code) == ("9\n", 0)


@pytest.mark.sandbox
@pytest.mark.hostile
async def test_who_looks_says_what_the_kernel_has_killed_and_kills_the_rest(handed_over: list[Path]) -> None:
    fork = "for _ in range(12):\n if os.fork() == 0:\n  held = bytearray(b'x') * (100 << 20)\n  time.sleep(60)"
    result = await run_program(f"import os, time\n{fork}\ntime.sleep(60)", timeout=50, memory_mb=256)
    assert (result.exit_code, result.timed_out) == (137, False)
    assert result.stderr == "Killed: its processes used more than 256 MiB of memory together.\n"


@pytest.mark.sandbox
@pytest.mark.hostile
async def test_where_no_group_can_be_made_a_program_runs_all_the_same(
    named: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(cgroup.VARIABLE, os.pathsep.join([str(tmp_path / "missing"), str(tmp_path / "file")]))
    assert (await run_program("print(1)", timeout=20)).stdout == "1\n"


MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
41 31 0:38 {root} /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""


@pytest.mark.parametrize(
    ("groups", "root", "folder"),
    [
        ("4:memory:/a\n0::/user.slice/a.scope\n", "/", ["/sys/fs/cgroup/unified/user.slice/a.scope"]),
        ("0::/docker/1/a\n", "/docker/1", ["/sys/fs/cgroup/unified/a"]),
        ("0::/\n", "/docker/1", []),
        ("4:memory:/a\n", "/", []),
    ],
)
def test_the_own_group_is_what_the_kernel_tells(groups: str, root: str, folder: list[str]) -> None:
    assert [str(path) for path in cgroup.own_group(groups, MOUNTS.format(root=root))] == folder


def made_up(folder: Path, processes: str, controllers: str = "cpu memory pids", limited: str = "") -> Path:
    """Write what a group of version 2 shows."""
    folder.mkdir()
    for name, text in (("procs", processes), ("controllers", controllers), ("subtree_control", limited)):
        (folder / f"cgroup.{name}").write_text(text)
    return folder


def test_a_group_in_which_this_process_is_alone_is_prepared_once(tmp_path: Path) -> None:
    own = made_up(tmp_path / "own", f"{os.getpid()}\n")
    assert cgroup.prepare(own) == own
    assert (own / cgroup.HOST / "cgroup.procs").read_text() == "0"
    assert (own / "cgroup.subtree_control").read_text() == "+memory +pids"
    (own / "cgroup.subtree_control").write_text("memory pids")
    assert cgroup.prepare(own / cgroup.HOST) == own


@pytest.mark.parametrize(("processes", "controllers"), [("1\n7\n", "memory pids"), ("{own}\n", "hugetlb")])
def test_a_group_of_others_or_without_controllers_is_left_alone(
    tmp_path: Path, processes: str, controllers: str
) -> None:
    own = made_up(tmp_path / "own", processes.format(own=os.getpid()), controllers)
    assert cgroup.prepare(own) is None
    assert cgroup.prepare(tmp_path / "none") is None
    assert sorted(file.name for file in own.iterdir()) == [
        "cgroup.controllers",
        "cgroup.procs",
        "cgroup.subtree_control",
    ]


def test_groups_of_processes_that_are_gone_are_cleared_away(
    named: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, alive = tmp_path / "reflect-999999999-0", tmp_path / f"reflect-{os.getpid()}-7"
    gone.mkdir()
    alive.mkdir()
    monkeypatch.setenv(cgroup.VARIABLE, str(tmp_path))
    assert cgroup._parents() == (tmp_path,)
    assert list(tmp_path.iterdir()) == [alive]
