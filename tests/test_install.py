"""`requirements/install.py`: how far an installation has come, and what is shown where it fails."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from requirements.install import progress

SCRIPT = Path(__file__).parents[1] / "requirements" / "install.py"
NO_HASH = f"--hash=sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("log", "installed", "words"),
    [
        ("", 2, "fetched 0 of 3 packages"),
        ("Collecting a==1\n  Using cached a.whl\nRequirement already satisfied: b==1\n", 2, "fetched 2 of 3 packages"),
        ("Collecting a==1\nInstalling collected packages: a, b\n", 3, "unpacked 1 of 2 packages"),
        ("Installing collected packages: a\nSuccessfully installed a-1\n", 9, "unpacked 1 of 1 packages"),
    ],
)
def test_progress_is_read_off_the_log_and_the_environment(log: str, installed: int, words: str) -> None:
    assert progress(log, 3, installed, before=2) == words


@pytest.mark.thorough
@pytest.mark.process
def test_what_pip_says_is_shown_only_where_it_fails(tmp_path: Path) -> None:
    pins = tmp_path / "pins.txt"
    version = metadata.version("idna")
    results = []
    for line in (f"idna=={version} {NO_HASH}\n", f"no-such-package-anywhere==1.0 {NO_HASH}\n"):
        pins.write_text(line)
        command = [sys.executable, str(SCRIPT), str(pins)]
        environment = {**os.environ, "PIP_NO_INDEX": "1"}
        results.append(subprocess.run(command, capture_output=True, text=True, check=False, env=environment))
    there, missing = results
    assert (there.returncode, there.stderr) == (0, "")
    assert missing.returncode != 0
    assert "no-such-package-anywhere" in missing.stderr
