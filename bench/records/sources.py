"""Where the logs lie: which repositories, commits and files, and how a folder of clones is read."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any, TypedDict

SPLIT = 60
"""Of a hundred tasks, how many are published; the others are kept back to check what was built."""


class RawFile(TypedDict, total=False):
    """What is known of a published file.

    Attributes:
        sha256: Of its bytes; missing where nobody has written it down.
        blob: Its git object, if it lies in the history or on a branch.
    """

    sha256: str
    blob: str


class Source(TypedDict):
    """Where a set comes from, and what it is to become.

    Attributes:
        repository: `owner/name` on GitHub.
        commit: The commit at which the files lie.
        files: The files, by their paths.
        licence: What the repository says.
        model: Who answered; empty for tasks.
        expected: The published figures.
        records: How many there are.
        sha256: Of the records, see `digest`.
    """

    repository: str
    commit: str
    files: dict[str, RawFile]
    licence: str
    model: str
    expected: dict[str, Any]
    records: int
    sha256: str


class Unusable(Exception):
    """A file that is missing or is another one; the message names it with its hash."""


SOURCES: dict[str, Source] = json.loads(Path(__file__).with_name("sources.json").read_text("utf-8"))
"""The sets by their names, those that others need first."""

EXECUTED = ("exec_pass", "root_exec_pass")
"""Verdicts that come from running programs, on this machine's Python with its packages; `digest` leaves them out."""


def published(id: str) -> bool:
    """Tell whether a task is among those whose figures are published: a fixed share, drawn by its id.

    Args:
        id: The task, such as `game24/900`.
    """
    return int(hashlib.sha1(id.encode(), usedforsecurity=False).hexdigest()[:8], 16) % 100 < SPLIT


def digest(records: list[dict[str, Any]]) -> str:
    """Return the SHA-256 of records as sorted JSON lines, without what running programs adds.

    Args:
        records: The records in order.
    """
    lines = hashlib.sha256()
    for record in records:
        verdict = record.get("verdict")
        if isinstance(verdict, dict):
            record = {**record, "verdict": {name: verdict[name] for name in verdict if name not in EXECUTED}}
        lines.update(json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return lines.hexdigest()


class Clones:
    """A folder of clones, each named like its repository."""

    def __init__(self, folder: Path) -> None:
        """Choose the folder."""
        self._folder = folder

    def read(self, source: Source) -> list[bytes]:
        """Read the files of a set in order, each as it lies in the folder or in the history of the clone.

        Raises:
            Unusable: if files are missing, or are not the published ones; it names them all.
        """
        found: list[bytes] = []
        wrong: list[str] = []
        for path, known in source["files"].items():
            try:
                found.append(self._file(source, path, known))
            except Unusable as problem:
                wrong.append(str(problem))
        if wrong:
            raise Unusable("; ".join(wrong))
        return found

    def _file(self, source: Source, path: str, known: RawFile) -> bytes:
        clone = self._folder / source["repository"].partition("/")[2]
        wanted = known.get("sha256")
        named = f"{clone / path} ({f'SHA-256 {wanted}' if wanted else 'hash unknown'})"
        if not clone.is_dir():
            raise Unusable(f"{named} is missing: clone {source['repository']} into {clone}")
        here = clone / path
        found = here.read_bytes() if here.is_file() else None
        if found is None or (wanted and _sha256(found) != wanted):
            blob = known.get("blob") or f"{source['commit']}:{path}"
            command = ["git", "-C", str(clone), "cat-file", "blob", blob]
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode == 0:
                found = done.stdout
        if found is None:
            raise Unusable(f"{named} is missing, at {source['commit']} as well")
        if wanted and _sha256(found) != wanted:
            raise Unusable(f"{named} is another file: it has {_sha256(found)}")
        return found


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def to_clone() -> list[str]:
    """Return the commands that bring the clones, one line a repository."""
    wanted = {source["repository"]: source["commit"] for source in SOURCES.values()}
    return [
        f"git clone https://github.com/{repository} FOLDER/{repository.partition('/')[2]}"
        f" && git -C FOLDER/{repository.partition('/')[2]} checkout {commit}"
        for repository, commit in wanted.items()
    ]
