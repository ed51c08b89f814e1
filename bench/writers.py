"""Processes that write to one memory at once, and are killed while they do: what is lost of it.

`python -m bench.writers [--batches N] [--kills N]` prints a table. Each process adds memories ten at a time, and tells
after each ten that they are kept. What was told and is not there is lost; ten of which only some are there are torn.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from langgraph.store.sqlite.aio import AsyncSqliteStore

from bench.memory import OWNER, Noise
from bench.options import parser_of
from reflective_agents.cli.database import write_ahead
from reflective_agents.memory.stream import MemoryStream
from reflective_agents.state.memories import memory_id, new_memory

TOGETHER = 10
"""Memories that are added at once."""
WRITERS = 2
"""Processes that write at once."""


class Written(NamedTuple):
    """What came of it: memories a second, told to be kept, lost of these, and batches that are there in part."""

    rate: float
    confirmed: int
    lost: int
    torn: int


def key_of(name: str, batch: int, number: int) -> str:
    """Return what names a memory of a writer."""
    return f"{name} {batch} {number}"


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[MemoryStream]:
    """Open the memory in a file."""
    async with AsyncSqliteStore.from_conn_string(str(file)) as store:
        await store.setup()
        await write_ahead(store)
        yield await MemoryStream.open(store, OWNER, Noise(), max_memories=10**6)


async def write_batches(file: Path, name: str, count: int) -> None:
    """Add batches of memories, and tell of each that it is kept."""
    async with opened(file) as stream:
        for batch in range(count):
            keys = [key_of(name, batch, number) for number in range(TOGETHER)]
            await stream.add([new_memory(f"This is {key}.", created=float(batch), key=key) for key in keys])
            sys.stdout.write(f"{batch}\n")
            sys.stdout.flush()


async def kept_of(file: Path, names: list[str], batches: int) -> dict[str, list[int]]:
    """Return for each writer how many memories of each batch are there, as a process that opens the memory sees it."""
    async with opened(file) as stream:
        there = {memory["id"] async for memory in stream.everything()}
    kept: dict[str, list[int]] = {}
    for name in names:
        kept[name] = [0] * batches
        for batch, number in product(range(batches), range(TOGETHER)):
            kept[name][batch] += memory_id(key_of(name, batch, number)) in there
    return kept


def write_at_once(file: Path, names: list[str], batches: int, kill_after: float | None = None) -> Written:
    """Let processes write at once, and kill them so many seconds after both have begun, if any."""
    asyncio.run(kept_of(file, [], 0))  # LangGraph's store cannot be set up by two processes at once
    command = [sys.executable, "-m", "bench.writers", "--write", str(file), "--batches", str(batches)]
    writers = [subprocess.Popen([*command, "--name", name], stdout=subprocess.PIPE, text=True) for name in names]
    first = [writer.stdout.readline() if writer.stdout else "" for writer in writers]
    started = time.monotonic()
    if kill_after is not None:
        time.sleep(kill_after)
        for writer in writers:
            writer.kill()
    rest = [writer.communicate()[0] for writer in writers]
    taken = time.monotonic() - started
    for writer in writers:
        if kill_after is None and writer.returncode:
            raise subprocess.CalledProcessError(writer.returncode, command)
    kept = asyncio.run(kept_of(file, names, batches))
    many = lost = torn = 0
    for name, begun, more in zip(names, first, rest, strict=True):
        added = len((begun + more).splitlines())
        many += TOGETHER * added
        lost += sum(TOGETHER - there for there in kept[name][:added])
        torn += sum(0 < there < TOGETHER for there in kept[name])
    return Written(many / max(taken, 1e-9), many, lost, torn)


def table(batches: int, kills: int) -> Iterator[str]:
    """Yield the lines of the table: processes that write to the end, and others that are killed."""
    yield "| | memories told to be kept | lost | batches torn | memories a second |"
    yield "|---|---:|---:|---:|---:|"
    with TemporaryDirectory() as folder:
        file = Path(folder) / "memory.sqlite"
        made = write_at_once(file, [f"writer {number}" for number in range(WRITERS)], batches)
        yield f"| {WRITERS} processes at once | {made.confirmed:,} | {made.lost} | {made.torn} | {made.rate:,.0f} |"
        killed = [
            write_at_once(file, [f"killed {kill} {number}" for number in range(WRITERS)], batches, 0.02 * (1 + kill))
            for kill in range(kills)
        ]
        added, lost, torn = (sum(getattr(each, name) for each in killed) for name in ("confirmed", "lost", "torn"))
        yield f"| {WRITERS} processes, killed {kills} times | {added:,} | {lost} | {torn} | |"


def main() -> None:
    """Print the table, or be one of the writers."""
    ask = parser_of("bench.writers", __doc__)
    ask.add_argument("--batches", type=int, default=100, help="batches that each process adds")
    ask.add_argument("--kills", type=int, default=10, help="how often both are killed")
    ask.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    ask.add_argument("--name", default="", help=argparse.SUPPRESS)
    given = ask.parse_args()
    if given.write:
        asyncio.run(write_batches(given.write, given.name, given.batches))
        return
    for line in table(3, 1) if given.quick else table(given.batches, given.kills):
        print(line, flush=True)


if __name__ == "__main__":
    main()
