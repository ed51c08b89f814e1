"""Installs a file of pins, and says how far it has come: `python requirements/install.py PINS`.

It runs pip in the environment of this Python and shows what pip wrote only where that fails. On a terminal the progress
is one line that is written over, else a line now and then. It needs nothing but the standard library, since it runs
before anything is installed.
"""

import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "install", "--no-compile", "--disable-pip-version-check", "--progress-bar", "off"]
PIN = re.compile(r"^[\w.-]+(\[.*?\])?==", re.MULTILINE)
FETCHED = re.compile(r"^(?:Collecting|Requirement already satisfied:) ", re.MULTILINE)
UNPACKING = re.compile(r"^Installing collected packages: (.*)", re.MULTILINE)
PATIENCE = 5.0
"""Seconds between two lines where nobody looks at a terminal."""


def progress(log: str, pins: int, installed: int, before: int) -> str:
    """Describe how far pip has come.

    Args:
        log: What pip has written so far.
        pins: How many packages the file names; those for other systems are not fetched.
        installed: How many packages are in the environment now.
        before: How many were when pip began.
    """
    if unpacking := UNPACKING.search(log):
        wanted = unpacking[1].count(",") + 1
        return f"unpacked {min(max(installed - before, 0), wanted)} of {wanted} packages"
    return f"fetched {min(len(FETCHED.findall(log)), pins)} of {pins} packages"


def install(pins: Path) -> int:
    """Install the pins, show the progress on stdout, and return pip's exit code."""
    text = pins.read_text("utf-8")
    packages = Path(sysconfig.get_path("purelib"))
    count = len(PIN.findall(text))
    before = len([*packages.glob("*.dist-info")])
    shown, since, terminal = "", time.monotonic(), sys.stdout.isatty()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "pip.log")
        with log.open("w", encoding="utf-8") as written:
            command = [*PIP, "--no-deps", "--require-hashes", "--requirement", str(pins)]
            pip = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT)
        while pip.poll() is None:
            time.sleep(0.3)
            words = progress(log.read_text("utf-8", "replace"), count, len([*packages.glob("*.dist-info")]), before)
            if words != shown and (terminal or time.monotonic() - since >= PATIENCE):
                print(f"\r  {words} ... " if terminal else f"  {words}", end="" if terminal else "\n", flush=True)
                shown, since = words, time.monotonic()
        if terminal:
            print("\r" + " " * 60, end="\r", flush=True)
        if pip.returncode:
            print(log.read_text("utf-8", "replace"), file=sys.stderr)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1])))
