"""On Windows and macOS: only the sandbox and the server need what those systems lack."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "reflective_agents"
LINUX_ONLY = ("tools", "serve")
AS_ON_WINDOWS = """
import builtins, importlib, os, pkgutil, signal, sys, types

MISSING_MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
MISSING = {"O_CLOEXEC", "SIGHUP", "SIGKILL", "fork", "geteuid", "getuid", "killpg", "register_at_fork", "setsid"}
OTHERWISE = {}
for module in (os, signal, sys):
    OTHERWISE[module.__name__] = types.ModuleType(module.__name__)
    kept = {name: value for name, value in vars(module).items() if name not in MISSING}
    vars(OTHERWISE[module.__name__]).update(kept)
OTHERWISE["sys"].platform = "win32"
real = builtins.__import__

def import_(name, globals=None, locals=None, fromlist=(), level=0):
    if (globals or {}).get("__name__", "").startswith("reflective_agents."):
        if name in MISSING_MODULES:
            raise ModuleNotFoundError(name)
        if name in OTHERWISE:
            return OTHERWISE[name]
    return real(name, globals, locals, fromlist, level)

builtins.__import__ = import_
linux_only = sys.argv.pop(1).split(",")
import reflective_agents
for found in pkgutil.walk_packages(reflective_agents.__path__, "reflective_agents."):
    if found.name.split(".")[1] not in linux_only and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
        print(found.name, file=sys.stderr)
importlib.import_module("reflective_agents.cli.main").main()
"""


@pytest.mark.thorough
@pytest.mark.process
def test_every_module_imports_and_the_command_runs_without_what_only_posix_has(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", AS_ON_WINDOWS, ",".join(LINUX_ONLY)]
    question = ["run", "lats", "What is RAP?", "--model", "offline", "--search", "local", "--json"]
    environment = {**os.environ, "REFLECT_HOME": str(tmp_path)}
    done = subprocess.run(
        [*command, *question], capture_output=True, text=True, cwd=ROOT / ".editable", env=environment
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcome"]["status"] == "solved"
    assert {"reflective_agents.cli.main", "reflective_agents.evals.workers"} <= set(done.stderr.split())
    assert list(tmp_path.glob("*.sqlite*"))


@pytest.mark.thorough
@pytest.mark.process
@pytest.mark.timeout(600)
def test_nothing_is_used_that_a_system_lacks() -> None:
    """The checker reads what the standard library has on each system, and of other libraries nothing."""
    here = errors_on("linux")
    lacking = {system: errors_on(system) - here for system in ("win32", "darwin")}
    assert any("reflective_agents/tools/" in error for error in lacking["win32"])
    elsewhere = re.compile(rf"reflective_agents/({'|'.join(LINUX_ONLY)})/")
    found = {system: [error for error in errors if not elsewhere.match(error)] for system, errors in lacking.items()}
    assert found == {"win32": [], "darwin": []}


def errors_on(system: str) -> set[str]:
    """Return what a checker that knows the standard library alone finds wrong with the package on a system."""
    options = ["--config-file=", "--python-version=3.11", "--follow-imports=skip", "--ignore-missing-imports"]
    folders = ["--explicit-package-bases", f"--cache-dir={os.devnull}", "--no-error-summary", "--hide-error-context"]
    command = [sys.executable, "-m", "mypy", f"--platform={system}", *options, *folders, "reflective_agents"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode in (0, 1), done.stderr
    return {*done.stdout.splitlines()}
