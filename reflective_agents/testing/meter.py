"""Counts what a scripted model was asked, how often, and how much of it at once."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from reflective_agents.testing.script import Request

Latency: TypeAlias = float | Callable[[Request], float]
"""Seconds a reply takes, or a function that says it for each request."""


class Meter:
    """Counters of one scripted model; safe to use from many threads."""

    def __init__(self) -> None:
        """Start from zero."""
        self.calls: list[Request] = []
        """Every request, in order of arrival."""
        self.in_flight = 0
        self.max_in_flight = 0
        self.waves = 0
        """How many times a call began while none was in flight."""
        self._attempts: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def call(self, request: Request) -> Iterator[Request]:
        """Count a call as in flight for the duration of the block; gives the request with its `attempt` filled in."""
        with self._lock:
            request = replace(request, attempt=self._attempts[request.key])
            self._attempts[request.key] += 1
            self.calls.append(request)
            self.waves += self.in_flight == 0
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            yield request
        finally:
            with self._lock:
                self.in_flight -= 1


class Metered:
    """What counts its calls with a meter."""

    _meter: Meter

    @property
    def calls(self) -> list[Request]:
        """Every request as the script sees it, in order of arrival; one for a call, whatever its `n`."""
        return self._meter.calls

    @property
    def in_flight(self) -> int:
        """How many calls are being answered now."""
        return self._meter.in_flight

    @property
    def max_in_flight(self) -> int:
        """The most calls that were being answered at once."""
        return self._meter.max_in_flight

    @property
    def waves(self) -> int:
        """How many times a call began while none was in flight."""
        return self._meter.waves


def seconds(latency: Latency, request: Request) -> float:
    """Return the latency of this request, in seconds."""
    return latency(request) if callable(latency) else latency
