"""What `reflect memory` and `reflect experience` share: how they open the store."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from reflective_agents.state.extras import need_for_memory

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

T = TypeVar("T")


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
