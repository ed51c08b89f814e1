"""Long-term memory in the server's own store: across threads, by user, and seen from outside."""

from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

pytestmark = [pytest.mark.studio, pytest.mark.matrix, pytest.mark.xdist_group("studio")]


async def say(client: LangGraphClient, text: str, user: str) -> Any:
    """The result of a turn on a new thread."""
    thread = (await client.threads.create())["thread_id"]
    context = {"model": "offline", "user": user, "embeddings": "lexical"}
    given: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
    return await client.runs.wait(thread, "memory", input=given, context=context)


@pytest.mark.thorough
async def test_what_one_thread_was_told_another_one_knows(client: LangGraphClient) -> None:
    fact = "My sister Ada lives in Turin and plays the cello."
    first = await say(client, fact, "studio.ada")
    again = await say(client, "Where does my sister live?", "studio.ada")
    other = await say(client, "Where does my sister live?", "studio.bob")
    assert (first["memories"], other["memories"]) == ([], [])
    [cited] = [memory for memory in again["memories"] if memory["cited"]]
    assert cited["text"] == fact
    assert "plays the cello." in again["answer"]
    assert "Turin" not in other["answer"]
    kept = (await client.store.search_items(("memory", "user%2Fstudio%2Eada", "text"), limit=10))["items"]
    assert len(kept) == 5
    assert fact in [item["value"]["text"] for item in kept]
