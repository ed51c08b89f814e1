"""Standard input, output and error as a shell may hand them over: closed, or leading to a full disk."""

import errno
import io
import os
import sys
from pathlib import Path

from reflective_agents.state.errors import Misuse, reason_of


def check_streams() -> None:
    """Put nothing in the place of a closed stdin or stderr, and let odd characters through.

    A closed descriptor would be given to the next file that is opened, which would then receive what is written.

    Raises:
        Misuse: if stdout is closed: an answer that cost money would be lost.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # this was a closed one, and stays open
    os.close(descriptor)
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123 - open until the end
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        raise Misuse("standard output is closed, so the answer would be lost; >/dev/null says that it may be")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # what a model writes need not fit the encoding of the terminal


def unwritable(error: OSError) -> str:
    """Say that something could not be written, if that is what an error means; else return nothing."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS):
        return ""
    return f"{error.filename or 'the output'} cannot be written: {error.strerror}"


def drop_output() -> None:
    """Let what is still to be written to stdout vanish, or Python would complain once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_text(value: str, name: str) -> str:
    """Return a text as it was given, or what it stands for: stdin for `-`, a file for `@FILE`.

    Args:
        value: What was given; `@@` stands for an `@` that a text begins with.
        name: What it was given as, for the message.

    Raises:
        Misuse: if the file or stdin cannot be read as UTF-8.
    """
    if value.startswith("@@"):
        return value[1:]
    if value != "-" and not value.startswith("@"):
        return value
    try:
        return sys.stdin.read() if value == "-" else Path(value[1:]).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        hint = "" if value == "-" else "; write @@ for a text that begins with @"
        raise Misuse(f"{name}: {value[:100]} cannot be read ({reason_of(error)}){hint}") from error
