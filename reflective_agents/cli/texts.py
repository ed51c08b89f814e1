"""Texts that are too long for a command line: `-` reads stdin, and `@FILE` a file."""

import sys
from pathlib import Path

from reflective_agents.state.errors import Misuse


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
        raise Misuse(f"{name}: {value[:100]} cannot be read ({error}){hint}") from error
