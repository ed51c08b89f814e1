"""What tests need beside Python and make: hidden from those that do not declare it, and listed where it is missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import NEEDS, PROGRAMS, ROOT, without


def test_programs_that_need_a_marker_are_hidden() -> None:
    assert [program for program in sorted(PROGRAMS) if shutil.which(program)] == []


def test_only_these_programs_are_hidden(tmp_path: Path) -> None:
    for folder, program in (("one", "bwrap"), ("one", "make"), ("two", "git")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / program).touch(mode=0o755)
    folders = [
        str(tmp_path / "one"),
        f"{tmp_path}/one/",
        os.path.relpath(tmp_path / "one"),
        str(tmp_path / "two"),
        "none",
    ]
    path = os.pathsep.join(folders)  # a folder may be there twice, and may be named from here
    hidden = without(["bwrap"], path, tmp_path)
    assert shutil.which("bwrap", path=path)
    assert not shutil.which("bwrap", path=hidden)
    assert all(shutil.which(program, path=hidden) for program in ("make", "git"))


@pytest.mark.thorough
@pytest.mark.process
def test_what_is_left_out_is_listed_with_what_brings_it() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/tools/test_forged.py"]
    environment = {name: value for name, value in os.environ.items() if name != "REQUIRE"}
    ended = subprocess.run(  # this test has no marker, so it sees none of the programs
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    [sandbox] = [need for need in NEEDS if need.marker == "sandbox"]
    assert sandbox.reason() in ended.stdout.partition("left out")[2]
