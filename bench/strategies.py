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

LATENCY = 0.1
ROUNDS = 4
MODEL = "openai:bench"
LATS: dict[str, Any] = {"search": "none", "n": 5, "max_expansions": 10, "grading": "each"}
AT_ONCE = {2: 14, 4: 10}
"""Leaves in flight, and the waves owed then."""


@dataclass(frozen=True)
class Sample:
    """The best of several rounds: wall clock and this process's processor time in seconds, and what was sent."""

    seconds: float
    cpu: float
    sent: Counters


def measure_lats(server: Server) -> list[Row]:
    """Measure LATS, 10 expansions of 5 candidates, each judged in a call of its own."""
    run, bare = asyncio.run(_compare(lats.graph, LATS, server))
    return [
        *counts("LATS, 10 expansions x 5 candidates", run, calls=62, waves=22),
        Row("  clock / (waves x 100 ms)", run.seconds / (run.sent.waves * LATENCY), "", timed=True, digits=3),
        Row("  the same of the bare client", bare.seconds / (bare.sent.waves * LATENCY), "", timed=True, digits=3),
        Row("  clock / bare client's, same requests", run.seconds / bare.seconds, "", 1.05, timed=True, digits=3),
        Row("  processor time a call, bare client", 1000 * bare.cpu / bare.sent.calls, "ms", timed=True, digits=2),
        Row("  processor time a call, beyond it", beyond(run, bare), "ms", 2, timed=True, digits=2),
    ]


def measure_lats_together(server: Server) -> list[Row]:
    """Measure LATS with all siblings judged in one call."""
    run, bare = asyncio.run(_compare(lats.graph, {**LATS, "grading": "together"}, server))
    return [
        *counts("LATS, siblings judged together", run, calls=22, waves=22),
        Row("  clock / bare client's, same requests", run.seconds / bare.seconds, "", 1.05, timed=True, digits=3),
        Row("  processor time a call, beyond the bare client's", beyond(run, bare), "ms", 2, timed=True, digits=2),
    ]


def measure_lats_parallel(server: Server) -> list[Row]:
    """Measure LATS with several leaves in flight."""
    rows = []
    for parallel, waves in AT_ONCE.items():
        run, bare = asyncio.run(_compare(lats.graph, {**LATS, "parallel": parallel}, server))
        rows += [
            *counts(f"LATS, {parallel} leaves in flight", run, calls=62, waves=waves),
            Row("  clock / bare client's, same requests", run.seconds / bare.seconds, "", 1.05, timed=True, digits=3),
        ]
    return rows


def measure_reflection(server: Server) -> list[Row]:
    """Measure Reflection, three rounds."""
    run, bare = asyncio.run(_compare(reflection.graph, {"max_rounds": 3}, server))
    return _short("Reflection, 3 rounds", run, bare, calls=6)


def measure_reflexion(server: Server) -> list[Row]:
    """Measure Reflexion, three revisions, with the local web search."""
    run, bare = asyncio.run(_compare(reflexion.graph, {"search": "local", "max_rounds": 3}, server))
    return _short("Reflexion, 3 revisions", run, bare, calls=4)


def _short(what: str, run: Sample, bare: Sample, calls: int) -> list[Row]:
    return [
        *counts(what, run, calls, waves=calls),
        Row("  clock / bare client's, same requests", run.seconds / bare.seconds, "", timed=True, digits=3),
    ]


def counts(what: str, run: Sample, calls: int, waves: int) -> list[Row]:
    """Return the rows that every strategy has."""
    return [
        Row(f"{what}: calls", run.sent.calls, "", calls),
        Row("  waves", run.sent.waves, "", waves),
        Row("  clock", run.seconds, "s", timed=True, digits=2),
    ]


def beyond(run: Sample, bare: Sample) -> float:
    """Return the milliseconds of processor time that a call costs beyond the bare client."""
    return 1000 * (run.cpu - bare.cpu) / run.sent.calls


async def _compare(graph: Any, settings: dict[str, Any], server: Server) -> tuple[Sample, Sample]:
    """Run the graph and the bare client in turn; the first run of each only warms up."""
    settings = {**settings, "model": MODEL}
    waves = await _record(graph, settings)
    pairs = []
    for _ in range(ROUNDS + 1):
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
