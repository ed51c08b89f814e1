"""The model's server in a process of its own, so that its work does not count as ours."""

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from bench.scripts import unsolvable
from reflective_agents.testing.openai_server import OpenAIServer


@dataclass(frozen=True)
class Counters:
    """What the server has seen, or a difference of two such moments."""

    calls: int
    waves: int
    tokens: int

    def __sub__(self, before: "Counters") -> "Counters":
        return Counters(self.calls - before.calls, self.waves - before.waves, self.tokens - before.tokens)


class Server:
    """The other end of the server's process; `latency` are the seconds before each answer."""

    def __init__(self, pipe: "Connection[bool, Counters]", latency: float) -> None:
        self._pipe = pipe
        self.latency = latency

    def counters(self) -> Counters:
        """Ask for the counters."""
        self._pipe.send(True)
        return self._pipe.recv()


@contextmanager
def serving(latency: float) -> Iterator[Server]:
    """Run a server that answers each call after `latency` seconds; the environment points to it meanwhile."""
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    process = spawning.Process(target=_serve, args=(theirs, latency), daemon=True)
    process.start()
    theirs.close()  # so that a server that dies ends the conversation
    before = dict(os.environ)
    os.environ.update(OPENAI_BASE_URL=ours.recv(), OPENAI_API_KEY="test", LANGSMITH_TRACING="false")
    try:
        yield Server(ours, latency)
    finally:
        os.environ.clear()
        os.environ.update(before)
        ours.send(False)
        process.join()


def _serve(pipe: "Connection[Counters | str, bool]", latency: float) -> None:
    with OpenAIServer(unsolvable, latency=latency).threaded() as server:
        pipe.send(server.base_url)
        while pipe.recv():
            pipe.send(Counters(len(server.calls), server.waves, server.total_tokens))
