"""The loggers, and where their lines go: nowhere, or as JSON to standard error or a file."""

import atexit
import json
import logging
import os
import queue
from collections.abc import Mapping
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from typing import Any, Literal, TypeAlias

from reflective_agents.state.errors import Misuse, reason_of

Plain: TypeAlias = str | float | bool | None

Kind = Literal["decision", "model", "tool", "memory", "loop"]
ROOT = logging.getLogger("reflect")
ROOT.addHandler(logging.NullHandler())
LOGGERS: dict[Kind, logging.Logger] = {
    "decision": logging.getLogger("reflect.decision"),
    "model": logging.getLogger("reflect.model"),
    "tool": logging.getLogger("reflect.tool"),
    "memory": logging.getLogger("reflect.memory"),
    "loop": logging.getLogger("reflect.loop"),
}


class Event(dict[str, Plain]):
    """The message of a record: a dictionary for handlers that want its parts, JSON for all others."""

    def __str__(self) -> str:
        return json.dumps(self, default=str)


class JsonLine(logging.Formatter):
    """A record of these loggers as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Put time, level and logger before what the record tells."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        header = {"time": time, "level": record.levelname, "logger": record.name}
        line = Event(header)
        for name, value in self.fields(record).items():
            # A field of an event must not pass for the time or the level of its line.
            line[f"{name}_" if name in header else name] = value
        return str(line)

    def fields(self, record: logging.LogRecord) -> Mapping[str, Any]:
        """Return what the record tells."""
        return record.msg if isinstance(record.msg, Mapping) else {"message": record.getMessage()}


class _Output:
    """A thread that writes, so that no event loop waits for a disk."""

    def __init__(self, target: str, level: int) -> None:
        self._writer = _open(target)
        self._handler = QueueHandler(queue.SimpleQueue())
        self._handler.setFormatter(JsonLine())
        self._listener = QueueListener(self._handler.queue, self._writer)
        self._listener.start()
        ROOT.addHandler(self._handler)
        ROOT.setLevel(level)

    def close(self) -> None:
        """Write what is waiting, and stop."""
        ROOT.removeHandler(self._handler)
        ROOT.setLevel(logging.NOTSET)
        self._listener.stop()
        self._writer.close()


_settings: tuple[str, str] = ("", "")
_output: _Output | None = None


def configure() -> None:
    """Let the lines go where REFLECT_LOG says: `stderr`, a path, or nowhere; from REFLECT_LOG_LEVEL upwards.

    Raises:
        Misuse: if the file cannot be written or there is no such level.
    """
    global _settings, _output
    settings = os.environ.get("REFLECT_LOG", ""), os.environ.get("REFLECT_LOG_LEVEL") or "INFO"
    if settings == _settings:
        return
    close()
    target, level = settings
    levels = logging.getLevelNamesMapping()
    if target and level.upper() not in levels:
        raise Misuse(f"REFLECT_LOG_LEVEL={level}: no such level; it is DEBUG, INFO or WARNING")
    _output = _Output(target, levels[level.upper()]) if target else None
    _settings = settings


@atexit.register
def close() -> None:
    """Write what is waiting, and let no more lines go anywhere."""
    global _settings, _output
    output, _output, _settings = _output, None, ("", "")
    if output is not None:
        output.close()


def _open(target: str) -> logging.Handler:
    if target == "stderr":
        return _stderr()
    try:
        return logging.FileHandler(Path(target).expanduser(), encoding="utf-8")
    except OSError as error:
        raise Misuse(
            f"REFLECT_LOG={target} cannot be written ({reason_of(error)}): name another file, or stderr"
        ) from error


def _stderr() -> logging.Handler:
    """Make a handler that writes to standard error what the application itself does not write there."""
    handler = logging.StreamHandler()

    def is_new(record: logging.LogRecord) -> bool:
        others = [it for it in logging.getLogger().handlers if getattr(it, "stream", None) is handler.stream]
        return all(it.level > record.levelno for it in others)

    handler.addFilter(is_new)
    return handler
