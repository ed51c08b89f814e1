"""Writes what was asked for into files: each whole or not at all, and none in place of another unless told to."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from reflective_agents.cli.output import say
from reflective_agents.state.errors import Misuse

STDOUT = "-"


class Export(NamedTuple):
    """A text and the option that says where to: a file, or `-` for stdout."""

    option: str
    target: str
    text: str


def check_targets(targets: Mapping[str, str | Path | None], force: bool) -> None:
    """Refuse, before anything is spent, files that could not be written in the end.

    Args:
        targets: Files by their options; None for an option that was not used.
        force: Whether files that are there already may be replaced.

    Raises:
        Misuse: if one cannot be written; the text names its option.
    """
    used = {option: str(target) for option, target in targets.items() if target is not None}
    if list(used.values()).count(STDOUT) > 1:
        raise Misuse(f"only one of {', '.join(used)} can go to stdout (-)")
    for option, target in used.items():
        if target != STDOUT:
            _check(option, target, force)


def check_folders(folders: Mapping[str, Path | None]) -> None:
    """Refuse, before anything is spent, folders that could not be made.

    Args:
        folders: Folders by their options; None for an option that was not used.

    Raises:
        Misuse: if one cannot be made, or written to; the text names its option.
    """
    for option, folder in folders.items():
        if folder is None:
            continue
        # Of a name that is too long nothing is there, and only its parent can be looked at.
        nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise Misuse(f"{option}: {folder} cannot be made, since {nearest} is not a folder that can be written to")


def write(exports: Sequence[Export], force: bool) -> None:
    """Write all of them.

    Args:
        exports: What to write. All targets are looked at before the first is written.
        force: Whether files that are there already may be replaced.

    Raises:
        Misuse: as `check_targets`.
    """
    check_targets({export.option: export.target for export in exports}, force)
    for export in exports:
        if export.target == STDOUT:
            sys.stdout.write(_encodable(export.text))
    for export in exports:
        if export.target != STDOUT:
            _replace(export)
            kind = "page" if export.option == "--html" else export.option.removeprefix("--")
            say(f"{kind}: {export.target}")


def write_each(writers: Iterable[Callable[[], None]]) -> None:
    """Write one thing after another; one that fails keeps none of the others.

    Raises:
        Misuse: the first failure, once all have been tried.
    """
    failures: list[Misuse] = []
    for writer in writers:
        try:
            writer()
        except Misuse as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def _check(option: str, target: str, force: bool) -> None:
    path = Path(target)
    if not target:
        raise Misuse(f"{option}: the name of the file is empty")
    if not os.path.isdir(path.parent):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        raise Misuse(f"{option}: there is no folder {path.parent}")
    if os.path.lexists(path) and not path.is_file():
        raise Misuse(f"{option}: {path} is not a file: use - for stdout")
    if os.path.lexists(path) and not force:
        raise Misuse(f"{option}: {path} is there already; add --force to replace it")
    with _partial(option, path) as partial:
        partial.touch()  # nothing else tells on every system whether files can be written here
        with suppress(FileNotFoundError):
            path.lstat()  # refuses a name that is too long


def _replace(export: Export) -> None:
    path = Path(export.target)
    with _partial(export.option, path) as partial:
        partial.write_text(_encodable(export.text), "utf-8")
        partial.replace(path)


@contextmanager
def _partial(option: str, path: Path) -> Iterator[Path]:
    """Yield a file beside another one, to be moved to its place or to be removed.

    Raises:
        Misuse: if it cannot be written.
    """
    # Beside it, since a file can only be moved whole within one file system.
    partial = path.with_name(f".reflect-{os.getpid()}.part")
    try:
        yield partial
    except OSError as error:
        raise Misuse(f"{option}: {path} cannot be written ({error.strerror or error})") from error
    finally:
        partial.unlink(missing_ok=True)


def _encodable(text: str) -> str:
    """Replace lone surrogates, which no file can hold, by their escapes: in JSON they mean the same."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
