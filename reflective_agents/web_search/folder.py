"""The files of a folder of documents: which of them are read, and what tells that one has changed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from reflective_agents.web_search.documents import SUFFIXES

Stamp = tuple[int, int]
"""Size in bytes and time of the last change in nanoseconds: a file that keeps both is not read again."""


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield every visible file, in order."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(parent, name)


def scan(folder: Path) -> Iterator[tuple[str, Stamp]]:
    """Yield path and stamp of every visible, non-empty file of a known kind; the path relative and percent-encoded."""
    for path in visible_files(folder):
        if path.suffix.lower() not in SUFFIXES:
            continue
        try:
            if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
                continue  # what lies elsewhere was not given to be searched
            info = path.stat()
        except OSError:  # removed meanwhile, or a link that leads nowhere
            continue
        if stat.S_ISREG(info.st_mode) and info.st_size:
            # Encoded: names of files may hold what is no text, and addresses of sources stand in answers.
            yield quote(os.fsencode(path.relative_to(folder).as_posix())), (info.st_size, info.st_mtime_ns)
