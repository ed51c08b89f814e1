"""What programs tried that the limits of single processes do not stop: keys, system calls, sums, orphans."""

import os
import platform
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reflective_agents.tools.sandbox import MAX_FILES, run_program
from reflective_agents.tools.seccomp import CLONE3, MACHINES, NEWEST, REFUSED, seccomp_filter

pytestmark = [pytest.mark.sandbox, pytest.mark.hostile]

CALLS = {"x86_64": 0, "aarch64": 1}.get(platform.machine(), 0)
SYSCALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    answer = libc.syscall(*arguments)
    return answer if answer >= 0 else f"error {ctypes.get_errno()}"
"""


async def output(code: str) -> str:
    result = await run_program(code, timeout=20, memory_mb=256)
    assert (result.exit_code, result.stderr, result.sandboxed) == (0, "", True)
    return result.stdout.strip()


def test_calls_are_refused_on_both_processors() -> None:
    for name in sorted(REFUSED):
        for machine, number in zip(("x86_64", "aarch64"), REFUSED[name], strict=True):
            assert decide(machine, number) == "errno 1"


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_decide(machine: str) -> None:
    _, _, socket, clone = MACHINES[machine]
    assert [decide(machine, socket, family) for family in (1, 2, 10)] == ["allowed"] * 3
    assert [decide(machine, socket, family) for family in (0, 16, 17, 38, 40, 1 << 31)] == ["errno 97"] * 6
    assert decide(machine, clone, 0x11) == "allowed"  # a thread or a fork
    assert [decide(machine, clone, 1 << bit) for bit in (17, 25, 26, 27, 28, 29, 30)] == ["errno 1"] * 7
    assert [decide(machine, number) for number in (CLONE3, NEWEST + 1, 0x4000_0000, 0xFFFF_FFFF)] == ["errno 38"] * 4
    assert decide(machine, 0, audit=0x4000_0003) == "killed"  # the 32-bit calls, which have other numbers
    assert decide(machine, 64) == ("allowed" if machine == "aarch64" else "errno 1")  # write there, semget here


def test_an_unknown_processor_has_no_filter() -> None:
    assert seccomp_filter("riscv64") is None


def decide(machine: str, number: int, argument: int = 0, audit: int | None = None) -> str:
    """Carry out the filter as the kernel would."""
    program = list(struct.iter_unpack("=HBBI", seccomp_filter(machine) or b""))
    data = struct.pack("=IIQQ", number, MACHINES[machine].audit if audit is None else audit, 0, argument)
    index, value = 0, 0
    while True:
        code, yes, no, constant = program[index]
        holds = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}.get(code)
        if code == 0x06:
            return {0x7FFF_0000: "allowed", 0x8000_0000: "killed"}.get(constant) or f"errno {constant & 0xFFFF}"
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, constant)
        index += 1 if holds is None else 1 + (yes if holds else no)


async def test_the_filter_is_loaded() -> None:
    code = "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('Seccomp:')])"
    assert await output(code) == "['2']"


async def test_calls_are_refused_by_the_kernel() -> None:
    names = ("keyctl", "add_key", "io_uring_setup", "shmget", "memfd_create", "bpf", "userfaultfd", "ptrace")
    code = f"{SYSCALL}print([call(number, 0, 0, 0, 0, 0) for number in {[REFUSED[name][CALLS] for name in names]}])"
    assert await output(code) == str(["error 1"] * len(names))


async def test_unusual_sockets_are_refused() -> None:
    code = """
import socket
for family in (socket.AF_VSOCK, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_ALG):
    try:
        print(socket.socket(family, socket.SOCK_RAW))
    except OSError as error:
        print(error.errno)
"""
    assert (await output(code)).split() == ["97"] * 4


HOLDER = """
import asyncio, ctypes, sys
from reflective_agents.tools.sandbox import run_program
join, add, read, session = {keyctl}, {add_key}, 11, -3
libc = ctypes.CDLL(None)
assert libc.syscall(join, 1, None) > 0  # a keyring of this test's own
key = libc.syscall(add, b"user", b"sesame", b"open", 4, session)
assert key > 0
program = f'''
import ctypes
text = ctypes.create_string_buffer(100)
print(ctypes.CDLL(None).syscall({keyctl}, 11, {{key}}, text, 100), text.value)
try:
    print("sesame" in open("/proc/keys").read())
except PermissionError:
    print(False)
'''
print(asyncio.run(run_program(program)).stdout)
"""


def test_the_keys_of_the_host_stay_its_own() -> None:
    names = {name: REFUSED[name][CALLS] for name in ("keyctl", "add_key")}
    command = [sys.executable, "-c", HOLDER.format(**names)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["-1", "b''", "False"]


async def test_only_the_interpreters_files_are_seen() -> None:
    code = """
import os
for folder in ("/", "/usr", "/usr/bin", "/usr/lib/python3", "/etc", "/usr/share", "/usr/local/bin"):
    print(folder, *sorted(os.listdir(folder)) if os.path.isdir(folder) else "-")
"""
    seen = dict(line.split(" ", 1) for line in (await output(code)).splitlines())
    assert {"etc", "home", "var", "opt", "mnt", "run", "srv"}.isdisjoint(seen["/"].split())
    assert set(seen["/usr"].split()) <= {"lib", "lib32", "lib64", "share", "bin", "local"}
    assert len(seen["/usr/bin"]) < 50
    assert (seen["/usr/lib/python3"], seen["/etc"], seen["/usr/share"]) == ("-", "-", "zoneinfo")


async def test_the_standard_library_works() -> None:
    code = """
import bz2, ctypes, decimal, hashlib, json, lzma, multiprocessing, sqlite3, ssl, subprocess, sys, threading, uuid, zlib
import concurrent.futures, dataclasses, unittest, zoneinfo
print(sqlite3.connect(":memory:").execute("select 6 * 7").fetchone()[0], hashlib.sha256(b"").hexdigest()[:4])
with concurrent.futures.ThreadPoolExecutor(4) as threads:
    print(sum(threads.map(abs, range(-9, 1))))
print(subprocess.run([sys.executable, "-c", "print(7)"], capture_output=True, text=True).stdout.strip())
print(zoneinfo.ZoneInfo("Europe/Paris"), uuid.uuid4().version, flush=True)
child = multiprocessing.get_context("fork").Process(target=print, args=(8,))
child.start()
child.join()
"""
    assert (await output(code)).splitlines() == ["42 e3b0", "45", "7", "Europe/Paris 4", "8"]


GREEDY = {
    "children": "hold = lambda: bytearray(b'x') * (100 << 20)",
    "children with shared memory": """
import mmap
def hold():
    shared = mmap.mmap(-1, 100 << 20)
    shared.write(bytes(100 << 20))
    return shared
""",
}


@pytest.mark.matrix
@pytest.mark.parametrize("hold", GREEDY.values(), ids=list(GREEDY))
async def test_memory_is_limited_in_sum(hold: str) -> None:
    fork = "for _ in range(12):\n if os.fork() == 0:\n  held = hold()\n  time.sleep(60)"
    code = f"{hold}\nimport os, time\n{fork}\ntime.sleep(60)"
    result = await run_program(code, timeout=30, memory_mb=256)
    assert (result.exit_code, result.timed_out) == (137, False)
    assert result.stderr == "Killed: its processes used more than 256 MiB of memory together.\n"


@pytest.mark.thorough
async def test_what_processes_share_counts_once() -> None:
    code = """
import os, time
held = bytearray(b"x") * (120 << 20)
for _ in range(6):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
time.sleep(1)
print(len(held) >> 20)
"""
    assert await output(code) == "120"


@pytest.mark.thorough
async def test_files_are_limited_in_number() -> None:
    code = f"import time\nfor n in range({MAX_FILES + 50}):\n open(str(n), 'w').close()\ntime.sleep(60)"
    result = await run_program(code, timeout=30)
    assert (result.exit_code, result.stderr) == (137, f"Killed: it made more than {MAX_FILES} files.\n")


HOST = """
import asyncio
from reflective_agents.tools.sandbox import run_program
code = "import os, time\\nos.fork()\\nos.setsid()\\ntime.sleep(1000)"
asyncio.run(run_program(code, timeout=1000, memory_mb={memory}))
"""


def sandboxed(memory: int) -> int:
    """Count the processes that were started with a limit of memory, which the test uses like a name."""
    marker = f'"AS": {memory << 20},'.encode()
    count = 0
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += marker in entry.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
    return count


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_outlives_the_host(number: signal.Signals) -> None:
    memory = 300 + number
    host = subprocess.Popen([sys.executable, "-c", HOST.format(memory=memory)])
    try:
        wait_for(lambda: sandboxed(memory) >= 4)  # bubblewrap, and both of the program's
        time.sleep(0.3)
    finally:
        os.kill(host.pid, number)
        host.wait()
    wait_for(lambda: sandboxed(memory) == 0)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
