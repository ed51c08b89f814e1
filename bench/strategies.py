"""Calls, waves, seconds and processor time of every strategy on a question that it cannot solve."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.replay import Recorder, Waves, replay
from bench.rows import Row
from bench.scripts import QUESTION
from bench.wire import Counters, Server
from reflective_agents.graphs import lats, reflection, reflexion
from reflective_agents.models.providers import close_models

MODEL = "openai:bench"
LATS: dict[str, Any] = {"search": "none", "n": 5, "max_expansions": 10}
EACH: dict[str, Any] = {**LATS, "grading": "each"}
"""Each sibling is judged in a call of its own; by default one call judges all of them."""
AT_ONCE = {2: 14, 4: 10}
"""Leaves in flight, and the most waves then."""


@dataclass(frozen=True)
class Sample:
    """The best of several rounds: wall clock and this process's processor time in seconds, and what was sent."""

    seconds: float
    cpu: float
    sent: Counters


def measure_lats(server: Server, rounds: int) -> list[Row]:
    """Measure LATS, 10 expansions of 5 candidates, siblings judged together."""
    run, bare = asyncio.run(_compare(lats.graph, LATS, server, rounds))
    return [*counts("LATS, 10 expansions x 5 candidates", run, calls=22, waves=22), *_beside(run, bare, 0.5)]


def measure_lats_each(server: Server, rounds: int) -> list[Row]:
    """Measure LATS with each sibling judged in a call of its own."""
    run, bare = asyncio.run(_compare(lats.graph, EACH, server, rounds))
    return [
        *counts("LATS, each sibling judged alone", run, calls=62, waves=22),
        Row("  clock / (waves x the model's time)", run.seconds / _waited(run, server), "", timed=True, digits=3),
        Row("  the same of the bare client", bare.seconds / _waited(bare, server), "", timed=True, digits=3),
        *_beside(run, bare, 0.25),
    ]


def measure_lats_parallel(server: Server, rounds: int) -> list[Row]:
    """Measure LATS with several leaves in flight, each sibling judged in a call of its own."""
    rows = []
    for parallel, waves in AT_ONCE.items():
        run, bare = asyncio.run(_compare(lats.graph, {**EACH, "parallel": parallel}, server, rounds))
        rows += [*counts(f"  and {parallel} leaves in flight", run, calls=62, waves=waves), _clock(run, bare, 1.05)]
    return rows


def measure_reflection(server: Server, rounds: int) -> list[Row]:
    """Measure Reflection, three rounds."""
    run, bare = asyncio.run(_compare(reflection.graph, {"max_rounds": 3}, server, rounds))
    return [*counts("Reflection, 3 rounds", run, calls=6, waves=6), _clock(run, bare)]


def measure_reflexion(server: Server, rounds: int) -> list[Row]:
    """Measure Reflexion, three revisions, with the local web search."""
    run, bare = asyncio.run(
        _compare(reflexion.graph, {"search": "local", "max_rounds": 3, "verify_sources": False}, server, rounds)
    )
    return [*counts("Reflexion, 3 revisions", run, calls=4, waves=4), _clock(run, bare)]


def counts(what: str, run: Sample, calls: int, waves: int) -> list[Row]:
    """Return the rows that every strategy has."""
    return [
        Row(f"{what}: calls", run.sent.calls, "", calls),
        Row("  waves", run.sent.waves, "", waves),
        Row("  clock", run.seconds, "s", timed=True, digits=2),
    ]


def _beside(run: Sample, bare: Sample, owed: float) -> list[Row]:
    """Return the rows that compare a run with the bare client's same requests."""
    beyond = run.cpu - bare.cpu
    return [
        _clock(run, bare, 1.05),
        Row("  processor time a call, bare client", 1000 * bare.cpu / bare.sent.calls, "ms", timed=True, digits=2),
        Row("  processor time a call, beyond it", 1000 * beyond / run.sent.calls, "ms", timed=True, digits=2),
        Row("  the same / the bare client's", beyond / bare.cpu, "", owed, timed=True, digits=2),
    ]


def _clock(run: Sample, bare: Sample, owed: float | None = None) -> Row:
    return Row("  clock / bare client's, same requests", run.seconds / bare.seconds, "", owed, timed=True, digits=3)


def _waited(sample: Sample, server: Server) -> float:
    """Return the seconds that a sample waits for its model, where all calls of a wave are in flight together."""
    return sample.sent.waves * server.latency


async def _compare(graph: Any, settings: dict[str, Any], server: Server, rounds: int) -> tuple[Sample, Sample]:
    """Run the graph and the bare client in turn; the first run of each only warms up."""
    settings = {**settings, "model": MODEL}
    waves = await _record(graph, settings)
    pairs = []
    for _ in range(rounds + 1):
        run = await _sample(server, lambda: graph.ainvoke(QUESTION, context=settings))
        bare = await _sample(server, lambda: replay(MODEL, waves))
        pairs.append((run, bare))
    await close_models()
    runs, bares = zip(*pairs[1:], strict=True)
    run = _best(runs)
    chain = replace(run.sent, waves=max(run.sent.waves, len(waves)))  # where waves overlap, the server sees fewer
    return replace(run, sent=chain), _best(bares)


async def _record(graph: Any, settings: dict[str, Any]) -> Waves:
    recorder = Recorder()
    await graph.ainvoke(QUESTION, {"callbacks": [recorder]}, context=settings)
    return recorder.waves


async def _sample(server: Server, work: Callable[[], Awaitable[object]]) -> Sample:
    before = server.counters()
    started, cpu = time.perf_counter(), time.process_time()
    await work()
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return Sample(seconds, cpu, server.counters() - before)


def _best(samples: tuple[Sample, ...]) -> Sample:
    """Return the best time and processor time of all rounds, and the largest counts."""
    most = max(samples, key=lambda sample: (sample.sent.waves, sample.sent.calls)).sent
    return Sample(min(sample.seconds for sample in samples), min(sample.cpu for sample in samples), most)
