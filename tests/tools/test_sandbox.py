"""The sandbox: what a program can do inside, and that nothing runs where there is none."""

import asyncio
import time
from pathlib import Path

import pytest

from reflective_agents.state.errors import SandboxMissing
from reflective_agents.tools.sandbox import MAX_OUTPUT_BYTES, MAX_PROCESSES, NOBODY, run_program, sandbox_available

pytestmark = pytest.mark.sandbox

ROOT = Path(__file__).parent.parent.parent


async def output(code: str, **options: float) -> str:
    """Run a program that must end well, and return what it printed."""
    result = await run_program(code, timeout=options.pop("timeout", 20), memory_mb=int(options.pop("memory_mb", 256)))
    assert (result.exit_code, result.stderr, result.sandboxed) == (0, "", True)
    return result.stdout.strip()


def running(memory_mb: int) -> list[str]:
    """Return the processes that were started with this limit of memory, which a test uses like a name."""
    marker = f'"AS": {memory_mb << 20},'.encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and marker in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def wait_until(runs: bool, memory_mb: int) -> None:
    """Wait until processes with this limit run, or until none does."""
    deadline = time.monotonic() + 20
    while bool(running(memory_mb)) != runs:
        assert time.monotonic() < deadline, running(memory_mb)
        time.sleep(0.01)


def content(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def test_is_available() -> None:
    available, by = sandbox_available()
    assert available, by


async def test_input_output_and_exit_code() -> None:
    result = await run_program("import sys\nprint(input()[::-1])\nprint('no', file=sys.stderr)\nsys.exit(3)", "äbc\n")
    assert (result.stdout, result.stderr, result.exit_code, result.timed_out) == ("cbä\n", "no\n", 3, False)


async def test_a_signal_shows_in_the_exit_code() -> None:
    assert (await run_program("import os\nos.kill(os.getpid(), 11)")).exit_code == 139


async def test_an_error_is_shown() -> None:
    result = await run_program("1 / 0")
    assert result.exit_code == 1
    assert "ZeroDivisionError" in result.stderr


async def test_what_is_printed_is_capped() -> None:
    result = await run_program("for _ in range(100):\n    print('x' * 100_000)", timeout=20)
    assert len(result.stdout) == MAX_OUTPUT_BYTES
    assert result.exit_code == 0


ENDLESS = {
    "computing": "while True: pass",
    "sleeping": "import time\ntime.sleep(1000)",
    "in silence": "import os, time\nos.close(1)\nos.close(2)\ntime.sleep(1000)",
}


@pytest.mark.thorough
@pytest.mark.parametrize("code", ENDLESS.values(), ids=list(ENDLESS))
async def test_a_program_that_never_ends_is_killed(code: str) -> None:
    result = await run_program(f"print('begun', flush=True)\n{code}", timeout=3, memory_mb=211)
    assert (result.exit_code, result.timed_out, result.stdout) == (None, True, "begun\n")
    await asyncio.to_thread(wait_until, False, 211)


async def test_cancelling_kills_everything() -> None:
    task = asyncio.create_task(run_program("import os\nos.fork()\nwhile True: pass", timeout=100, memory_mb=212))
    await asyncio.to_thread(wait_until, True, 212)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(wait_until, False, 212)


@pytest.mark.matrix
@pytest.mark.parametrize("moment", [0.0, 0.002, 0.005, 0.01, 0.02, 0.04])
async def test_cancelling_at_the_start_leaves_nothing(moment: float) -> None:
    task = asyncio.create_task(run_program("while True: pass", timeout=100, memory_mb=214))
    await asyncio.to_thread(wait_until, True, 214)
    await asyncio.sleep(moment)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(wait_until, False, 214)


async def test_the_environment_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    code = """
import glob, os
seen = repr(dict(os.environ))
for path in glob.glob("/proc/*/environ"):
    try:
        seen += open(path).read()
    except OSError:
        pass
print("sk-not" in seen, "OPENAI" in seen, sorted(os.environ.keys() - {"LC_CTYPE"}))  # which Python may set itself
"""
    assert await output(code) == "False False ['PWD']"


async def test_there_is_no_network() -> None:
    code = """
import socket
print([line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line])
for address in ("127.0.0.1", 9), ("192.0.2.1", 80):
    try:
        socket.create_connection(address, timeout=5)
    except OSError as error:
        print(error)
"""
    lines = (await output(code)).split("\n")
    assert lines == ["['lo']", "[Errno 111] Connection refused", "[Errno 101] Network is unreachable"]


async def test_it_writes_nowhere_but_in_its_own_folder(tmp_path: Path) -> None:
    code = f"""
import os
for folder in ("/", "/usr", "/usr/bin", "/etc", "/dev", "/dev/shm", "/proc/sys/kernel", "/home", {str(tmp_path)!r}):
    try:
        open(os.path.join(folder, "mark"), "w")
        print("wrote to", folder)
    except OSError:
        pass
print(os.listdir("."), os.getcwd())
open("mark", "w").write("mine")
"""
    for _ in range(2):  # the second finds nothing of the first
        assert await output(code) == "[] /tmp"
    assert content(tmp_path) == []


async def test_it_does_not_see_this_project() -> None:
    assert await output(f"import os\nprint(os.path.exists({str(ROOT / 'pyproject.toml')!r}))") == "False"


async def test_a_file_and_the_folder_are_limited() -> None:
    code = """
def fill(name):
    size = 0
    with open(name, "wb", buffering=0) as file:
        try:
            while size < 100_000_000:
                size += file.write(bytes(1_000_000))
        except OSError:
            pass
    return size
print(fill("a") <= 4_000_000, sum(fill(f"b{number}") for number in range(20)) <= 16_000_000)
"""
    assert await output(code) == "True True"


async def test_it_is_nobody_without_rights() -> None:
    code = """
import os
print(os.getuid(), os.getgid(), os.getgroups())
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapEff", "CapBnd", "NoNewPrivs"))])
try:
    os.setuid(0)
except OSError:
    print("refused")
"""
    nothing = "0000000000000000"
    assert await output(code) == f"{NOBODY} {NOBODY} []\n['{nothing}', '{nothing}', '1']\nrefused"


async def test_it_can_make_no_namespace_of_its_own() -> None:
    code = "import ctypes\nprint(ctypes.CDLL(None).unshare(0x10000000))"  # CLONE_NEWUSER
    assert await output(code) == "-1"


async def test_processes_are_limited() -> None:
    code = """
import os, time
count = 0
try:
    while count < 1000:
        if os.fork() == 0:
            time.sleep(1000)
        count += 1
except OSError:
    print(count)
"""
    assert int(await output(code)) < MAX_PROCESSES


async def test_memory_is_limited() -> None:
    assert (
        await output("try:\n    bytearray(1 << 30)\nexcept MemoryError:\n    print('refused')", memory_mb=256)
        == "refused"
    )


async def test_it_cannot_kill_its_parent() -> None:
    code = """
import os, signal
for victim in (1, os.getppid(), -1):
    try:
        os.kill(victim, signal.SIGKILL)
    except OSError:
        pass
print("still here")
"""
    assert await output(code) == "still here"


async def test_without_bubblewrap_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxMissing, match=r"not installed\. Install it .* unsafe_subprocess=True"):
        await run_program(f"open({str(tmp_path / 'mark')!r}, 'w')")
    assert not (tmp_path / "mark").exists()


async def test_where_bubblewrap_does_not_work_nothing_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'no permission to create a namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxMissing, match="no permission to create a namespace"):
        await run_program("print(1)")


async def test_a_plain_process_must_be_allowed_and_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = await run_program("import os\nprint('PATH' in os.environ)", unsafe_subprocess=True)
    assert (result.stdout, result.sandboxed) == ("False\n", False)
    assert "WITHOUT a sandbox" in caplog.text


async def test_a_plain_process_is_killed_with_its_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code = "import os\nos.fork()\nwhile True: pass"
    result = await run_program(code, timeout=1, memory_mb=213, unsafe_subprocess=True)
    assert result.timed_out
    await asyncio.to_thread(wait_until, False, 213)


async def test_the_permission_does_not_replace_the_sandbox() -> None:
    assert (await run_program("", unsafe_subprocess=True)).sandboxed
