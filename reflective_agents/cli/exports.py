"""Writes what was asked for into files: each whole or not at all, and none in place of another unless told to."""

import os
import sys
from collections.abc import Sequence
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


def write(exports: Sequence[Export], force: bool) -> None:
    """Write all of them.

    Args:
        exports: What to write. All targets are looked at before the first is written.
        force: Whether files that are there already may be replaced.

    Raises:
        Misuse: if one cannot be written; the text names its option.
    """
    if sum(export.target == STDOUT for export in exports) > 1:
        raise Misuse(f"only one of {', '.join(export.option for export in exports)} can go to stdout (-)")
    files = [export for export in exports if export.target != STDOUT]
    for export in files:
        _check(export, force)
    for export in exports:
        if export.target == STDOUT:
            sys.stdout.write(_encodable(export.text))
    for export in files:
        _replace(export)
        say(f"{'page' if export.option == '--html' else export.option.removeprefix('--')}: {export.target}")


def _check(export: Export, force: bool) -> None:
    path = Path(export.target)
    if not export.target:
        raise Misuse(f"{export.option}: the name of the file is empty")
    if not path.parent.is_dir():
        raise Misuse(f"{export.option}: there is no folder {path.parent}")
    if os.path.lexists(path) and not path.is_file():
        raise Misuse(f"{export.option}: {path} is not a file: use - for stdout")
    if os.path.lexists(path) and not force:
        raise Misuse(f"{export.option}: {path} is there already; add --force to replace it")


def _replace(export: Export) -> None:
    path = Path(export.target)
    partial = path.with_name(f".reflect-{os.getpid()}.part")
    try:
        partial.write_text(_encodable(export.text), "utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise Misuse(f"{export.option}: {path} cannot be written ({error.strerror or error})") from error


def _encodable(text: str) -> str:
    """Replace lone surrogates, which no file can hold, by their escapes: in JSON they mean the same."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
