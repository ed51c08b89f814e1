"""The environments of the peers: made once with uv from exact pins, in the user's cache folder, and used again."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import platformdirs

PINS = Path(__file__).parent / "pins"
TIMEOUT = 900
"""Most seconds that one step of an installation may take."""


def version(name: str) -> str:
    """Return the version of a peer that its pins name."""
    match = re.search(rf"^{re.escape(name)}==(\S+)", _pins(name).read_text(), re.MULTILINE)
    assert match, f"the pins of {name} do not name it"
    return match[1]


def folder(name: str) -> Path:
    """Return the folder of a peer's environment; other pins or another Python have another one."""
    digest = hashlib.sha256(_pins(name).read_bytes() + sys.version.encode()).hexdigest()[:12]
    return platformdirs.user_cache_path("reflective-agents") / "peers" / f"{name}-{version(name)}-{digest}"


def prepare(name: str) -> Path:
    """Prepare a peer's environment if it is not there, and return its interpreter.

    Raises:
        subprocess.CalledProcessError: if uv fails, with its complaint as `stderr`: for example, without a network.
        subprocess.TimeoutExpired: if it takes too long.
    """
    directory = folder(name)
    python, done = directory / "bin" / "python", directory / "complete"
    if not done.exists():
        _uv("venv", "--clear", "--python", sys.executable, str(directory))
        _uv("pip", "install", "--no-deps", "--python", str(python), "--requirements", str(_pins(name)))
        done.touch()
    return python


def _pins(name: str) -> Path:
    return PINS / f"{name}.txt"


def _uv(*arguments: str) -> None:
    command = [sys.executable, "-m", "uv", "--quiet", *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT)
