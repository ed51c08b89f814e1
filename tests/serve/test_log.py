"""The lines of the server's log."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.contextvars import bound_contextvars

from reflective_agents.serve.log import ServerLine
from reflective_agents.telemetry.log import Event


@pytest.fixture(autouse=True)
def worker() -> Iterator[None]:
    with bound_contextvars(run_id="of the server", original_request_id="of the client", thread_id="a thread"):
        yield


def line(message: Any, logger: str = "aegra_api", **options: Any) -> dict[str, Any]:
    record = logging.LogRecord(logger, logging.INFO, "a file", 1, message, (), options.get("exc_info"))
    found: dict[str, Any] = json.loads(ServerLine().format(record))
    return found


def test_every_line_has_the_ids_of_its_request_and_run() -> None:
    ids = {"request_id": "of the client", "run_id": "of the server", "thread_id": "a thread"}
    event = Event({"event": "end", "run_id": "of the strategy", "thread_id": "a thread"})
    assert line(event, "reflect.decision").items() >= {**ids, "strategy_run_id": "of the strategy"}.items()
    assert line({"event": "Run failed", "run_id": "of the server", "lineno": 7}).items() >= ids.items()
    assert line("in words").items() >= {**ids, "event": "in words"}.items()


def test_a_traceback_is_a_text() -> None:
    try:
        raise ValueError("wrong")
    except ValueError as error:
        found = line("It failed", exc_info=(ValueError, error, error.__traceback__))
    assert found["exception"].endswith("ValueError: wrong")


def test_no_line_holds_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", 'sk-3"f8a61c0d9e2b')
    try:
        raise OSError('refused: sk-3"f8a61c0d9e2b')
    except OSError as error:
        found = line({"event": 'with sk-3"f8a61c0d9e2b'}, exc_info=(OSError, error, error.__traceback__))
    assert found["event"] == "with [SOME_API_KEY]"
    assert found["exception"].endswith("OSError: refused: [SOME_API_KEY]")
