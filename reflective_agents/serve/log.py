"""The log of `make serve`: a line of JSON for each request, for the end of each run, and for whatever goes wrong.

Every line has the ids of its request and run. What a run does in between is told where REFLECT_LOG says.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from structlog.contextvars import bind_contextvars, get_contextvars

from reflective_agents.serve.in_process import OWN_HOST
from reflective_agents.state.secrets import redacted
from reflective_agents.telemetry.log import JsonLine

_CHATTY = "aegra_api", "httpx", "httpx2", "mcp", "sse_starlette"
"""Loggers that tell of each step of a request, or of each request to a model, which `reflect.model` tells of."""
_ACCESS = "app.access_logs"
_IDS = "request_id", "run_id", "thread_id", "user_id"
_LEFT_OUT = {"event", "filename", "func_name", "level", "lineno", "logger", "network", "original_request_id"}
_LEFT_OUT |= {"timestamp", *_IDS}


def configure() -> None:
    """Write the log so, instead of as Aegra does; after Aegra was imported.

    With LOG_LEVEL=DEBUG all loggers are heard. With ENV_MODE=LOCAL a terminal gets Aegra's colours, a file never does.
    """
    if os.environ.get("ENV_MODE") in ("LOCAL", "DEVELOPMENT") and sys.stdout.isatty():
        return
    is_brief = os.environ.get("LOG_LEVEL", "").upper() != "DEBUG"
    for handler in logging.getLogger().handlers:
        handler.setFormatter(ServerLine())
        if is_brief:
            handler.addFilter(_is_wanted)
    for name in _CHATTY if is_brief else ():
        logging.getLogger(name).setLevel(logging.WARNING)


def name_run(run_id: str) -> None:
    """Name the run in the lines of the request that has begun it."""
    bind_contextvars(run_id=run_id)


class ServerLine(JsonLine):
    """A record as a line of JSON, with the ids of the request and the run that it is of, and without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Cut the secrets of the environment out, which texts of exceptions may quote."""
        return redacted(super().format(record))

    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return what the record tells: that of structlog has its event and all ids as its message."""
        found: dict[str, Any] = dict(record.msg) if isinstance(record.msg, Mapping) else {"event": record.getMessage()}
        context = get_contextvars()
        # A worker knows the request that has begun its run.
        context["request_id"] = context.get("request_id") or context.get("original_request_id")
        if record.name.startswith("reflect.") and "run_id" in found:
            found["strategy_run_id"] = found["run_id"]
        http = found.pop("http", None)
        if record.name == _ACCESS and isinstance(http, Mapping):
            found |= {"method": http["method"], "url": http["url"], "status": http["status_code"]}
            found["seconds"] = round(found.pop("duration", 0) / 1e9, 4)
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        event = {} if record.name == _ACCESS else {"event": found.get("event")}
        ids = {name: found_id for name in _IDS if (found_id := context.get(name) or found.get(name))}
        return event | ids | {name: value for name, value in found.items() if name not in _LEFT_OUT}


def _is_wanted(record: logging.LogRecord) -> bool:
    message = record.msg if isinstance(record.msg, Mapping) else {}
    if record.name == _ACCESS and message.get("network", {}).get("client", {}).get("ip") == OWN_HOST:
        return record.levelno >= logging.ERROR
    if record.levelno < logging.WARNING and record.name.startswith("reflect."):
        return message.get("event") == "end" and "parent_run_id" not in message
    return True
