"""What an evaluation spends, on the disk before it is spent: lines of JSON that add up, whatever kills the process.

A call is written with the most that it may take before it is sent, and corrected when it is settled. So a call that
was under way when the process was killed counts as the most.
"""

import errno
import json
import os
from pathlib import Path

from reflective_agents.state.errors import Misuse

UNITS = ("budget_tokens", "max_total_cost")
"""What is counted: tokens, and nano-dollars."""


class Ledger:
    """A file of amounts, to which several processes may append at once.

    Attributes:
        unreadable: Lines that could not be read, such as one that was half written when the process was killed.
    """

    def __init__(self, file: Path) -> None:
        """Open a file, which may be new.

        Raises:
            Misuse: if it cannot be written.
        """
        self.unreadable = 0
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise Misuse(f"{file} cannot be written ({error.strerror or error})") from error

    def total(self) -> dict[str, int]:
        """Add up what can be read."""
        with open(self._file, "rb", closefd=False) as stream:
            stream.seek(0)
            lines = [line for line in stream.read().split(b"\n") if line]
        total: dict[str, int] = dict.fromkeys(UNITS, 0)
        self.unreadable = 0
        for line in lines:
            amounts = _amounts(line)
            if amounts is None:
                self.unreadable += 1
                continue
            for name in UNITS:
                total[name] += amounts[name]
        return total

    def add(self, amounts: dict[str, int]) -> None:
        """Append amounts. The line begins with a line break, which ends one that was half written.

        Raises:
            Misuse: if they cannot be written.
        """
        line = b"\n" + json.dumps(amounts).encode() + b"\n"
        try:
            # Appended in one call: processes that write at once do not mix their lines. A full disk takes a
            # part of it.
            if os.write(self._file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise Misuse(f"what is spent cannot be written ({error.strerror or error})") from error

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _amounts(line: bytes) -> dict[str, int] | None:
    try:
        amounts = json.loads(line)
        return {name: int(amounts[name]) for name in UNITS}
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
