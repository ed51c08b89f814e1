"""Runs the `reflect` command in a process of its own, which may be killed without warning on the way."""

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from reflective_agents.cli.main import main
from reflective_agents.evals.results import Store

# A process forked from one that has imported everything starts at once.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class Death:
    """When a process dies: as soon as so many things of a kind are on the disk.

    A `checkpoint` is one of the run itself, an `inner checkpoint` one of a strategy that works inside it, a `report`
    what one of several workers has done while the others are still at work, a `result` one of an evaluation.
    """

    number: int
    of: Literal["checkpoint", "inner checkpoint", "report", "result"] = "checkpoint"


class Unexpected(Exception):
    """A command ended in another way than it was meant to."""


def reflect(folder: Path, arguments: Sequence[str], *, death: Death | None = None, code: int = 0) -> str:
    """Run the command in a folder, and return what it writes on stdout; nothing if it dies.

    Raises:
        Unexpected: if it ends with another code, or does not die.
    """
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=_live, args=(sender, str(folder), list(arguments), death, dict(os.environ)))
    process.start()
    sender.close()
    try:
        out, err = receiver.recv()
    except EOFError:
        out, err = "", ""
    process.join()
    wanted = -signal.SIGKILL if death else code
    if process.exitcode != wanted:
        raise Unexpected(f"reflect {' '.join(arguments)}: {process.exitcode}, not {wanted}\n{out}{err}")
    return str(out)


def _live(sender: Any, folder: str, arguments: list[str], death: Death | None, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if death:
        _arm(death)
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(arguments)
    sender.send((out.getvalue(), err.getvalue()))
    raise SystemExit(code)


def _arm(death: Death) -> None:
    count = itertools.count(1)

    def happened(kind: str) -> None:
        if kind == death.of and next(count) == death.number:
            os.kill(os.getpid(), signal.SIGKILL)

    _watch_store(happened)
    for saver in (AsyncSqliteSaver, AsyncPostgresSaver):
        _watch_saver(saver, happened)


def _watch_store(happened: Callable[[str], None]) -> None:
    append = Store.append

    def appended(self: Store, result: Any) -> None:
        append(self, result)
        happened("result")

    setattr(Store, "append", appended)  # noqa: B010  # mypy wants it so


def _watch_saver(saver: Any, happened: Callable[[str], None]) -> None:
    put, put_writes = saver.aput, saver.aput_writes

    async def was_put(self: Any, config: Any, *rest: Any) -> Any:
        saved = await put(self, config, *rest)
        happened("inner checkpoint" if config["configurable"]["checkpoint_ns"] else "checkpoint")
        return saved

    async def writes_were_put(self: Any, config: Any, writes: Any, *rest: Any) -> None:
        await put_writes(self, config, writes, *rest)
        if any(channel == "reports" for channel, _ in writes):
            happened("report")

    saver.aput, saver.aput_writes = was_put, writes_were_put
