"""What `reflect memory` and `reflect experience` share: how they open the store, and read and write what is in it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from reflective_agents.state.errors import Misuse, reason_of
from reflective_agents.state.extras import need_for_memory

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

T = TypeVar("T")
Vectors = Annotated[str | None, typer.Option("--embeddings", help="What its vectors are made with, as for a run.")]
Target = Annotated[str, typer.Argument(help="A file, or - for stdout.", metavar="FILE|-")]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]


def with_store(work: "Callable[[BaseStore], Awaitable[T]]") -> T:
    """Open the store, do some work on it and return its result.

    Raises:
        Misuse: if what a memory needs is not installed.
        NoDatabase: if the database cannot be reached or opened.
    """
    need_for_memory()
    from reflective_agents.cli.database import open_store
    from reflective_agents.models.providers import close_models

    async def main() -> T:
        try:
            async with open_store() as store:
                assert store is not None
                return await work(store)
        finally:
            await close_models()

    return asyncio.run(main())


async def lines(exported: AsyncIterator[str]) -> str:
    """Return what is exported as a text, each entry on a line of its own."""
    return "".join([f"{line}\n" async for line in exported])


def read_lines(file: Path) -> list[str]:
    """Return the lines of a file, or of stdin for `-`.

    Raises:
        Misuse: if it cannot be read as text.
    """
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Misuse(f"{file} cannot be read: {reason_of(error)}") from error
    return text.split("\n")


def minute(seconds: float) -> str:
    """Return a time, in seconds since 1970, as a person reads it, to the minute."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"
