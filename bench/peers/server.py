"""The local server of the comparison, in a process of its own; its conditions change between the measurements."""

import json
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from bench.peers.script import reply
from bench.wire import Counters
from reflective_agents.testing.faults import Fault
from reflective_agents.testing.openai_server import OpenAIServer


@dataclass(frozen=True)
class Conditions:
    """What the server does: seconds before each answer; each how-many-th request fails for good, 0 for none."""

    latency: float = 0.0
    failing: int = 0


class Weather:
    """The conditions that hold now, as the server asks for them."""

    def __init__(self) -> None:
        self.change(Conditions())

    def change(self, conditions: Conditions) -> None:
        """Change the conditions, and count the requests anew."""
        self._conditions = conditions
        self._numbers: dict[str, int] = {}

    def latency(self, _: object) -> float:
        """Return the seconds before an answer."""
        return self._conditions.latency

    def fault(self, body: dict[str, Any], _: int) -> Fault | None:
        """Fail the same requests however often they are sent again: the same body meets the same fate."""
        number = self._numbers.setdefault(json.dumps(body, sort_keys=True), len(self._numbers) + 1)
        return "500" if self._conditions.failing and number % self._conditions.failing == 0 else None


class PeerServer:
    """The other end of the server's process; its `base_url` is what OPENAI_BASE_URL must be."""

    def __init__(self, pipe: "Connection[Conditions | str, Counters | str]") -> None:
        self._pipe = pipe
        self.base_url = str(pipe.recv())

    def change(self, conditions: Conditions) -> Counters:
        """Change the conditions; gives the counters up to now."""
        self._pipe.send(conditions)
        counters = self._pipe.recv()
        assert isinstance(counters, Counters)
        return counters


@contextmanager
def serving() -> Iterator[PeerServer]:
    """Run the server."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # so that a server that dies ends the conversation
    try:
        yield PeerServer(ours)
    finally:
        ours.send("stop")
        process.join()


def _serve(pipe: "Connection[Counters | str, Conditions | str]") -> None:
    weather = Weather()
    with OpenAIServer(reply, latency=weather.latency, faults=weather.fault).threaded() as server:
        pipe.send(server.base_url)
        while isinstance(order := pipe.recv(), Conditions):
            pipe.send(Counters(len(server.calls), server.waves, server.total_tokens))
            weather.change(order)
