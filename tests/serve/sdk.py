"""What LangGraph's own clients do, alike on both servers."""

from typing import Any
from uuid import uuid4

import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

OFFLINE = {"model": "offline", "search": "none"}


def question(text: str = "Why is reflection useful?") -> Any:
    return {"messages": [{"role": "user", "content": text}]}


async def answered(client: LangGraphClient, **options: Any) -> str:
    thread = str((await client.threads.create())["thread_id"])
    await client.runs.wait(thread, "lats", input=question(), context=OFFLINE, **options)
    return thread


async def the_sdk_works(client: LangGraphClient) -> None:
    """Do what both servers can."""
    thread = await answered(client)
    mark = str(uuid4())
    await client.threads.update(thread, metadata={"mark": mark})
    found: list[Any] = [*await client.threads.search(metadata={"mark": mark}, select=["thread_id", "status"])]
    assert found == [{"thread_id": thread, "status": "idle"}]
    assert await client.threads.count(metadata={"mark": mark}) == 1
    [run] = await client.runs.list(thread)
    [last] = await client.threads.get_history(thread, metadata={"run_id": run["run_id"]}, limit=1)
    latest = (await client.threads.get_state(thread))["checkpoint"]
    assert last["checkpoint"]["checkpoint_id"] == latest["checkpoint_id"]


async def a_run_goes_on_without_an_input(client: LangGraphClient) -> None:
    """Interrupt a run before a node, and let it go on."""
    thread = await answered(client, interrupt_before=["finish"])
    assert (await client.threads.get_state(thread))["next"] == ["finish"]
    values: Any = await client.runs.wait(thread, "lats", input=None, context=OFFLINE)
    assert values["outcome"]["status"]


async def a_remote_graph_has_a_state(client: LangGraphClient) -> None:
    """Run a graph of the server's as one of one's own."""
    graph, thread = RemoteGraph("lats", client=client), await answered(client)
    state = await graph.aget_state({"configurable": {"thread_id": thread}})
    assert (state.next, bool(state.values["outcome"])) == ((), True)


async def langgraphs_server_copies_and_waits(client: LangGraphClient) -> None:
    """Copy a thread, and begin a run later: what Aegra lacks."""
    thread = await answered(client)
    await client.threads.copy(thread)
    run = await client.runs.create(thread, "lats", input=question(), context=OFFLINE, after_seconds=60)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "pending"
    await client.runs.cancel(thread, run["run_id"])


async def aegra_knows_assistants_by_name(client: LangGraphClient) -> None:
    """Name a strategy, where LangGraph's server takes ids alone."""
    assert {"nodes", "edges"} <= (await client.assistants.get_graph("lats", xray=True)).keys()
    assert (await client.assistants.get_schemas("lats"))["context_schema"]
    assert (await client.assistants.get("lats"))["graph_id"] == "lats"


async def aegra_refuses_what_it_lacks(client: LangGraphClient) -> None:
    """Ask for what Aegra cannot do."""
    thread = str((await client.threads.create())["thread_id"])
    for status, attempt in (
        (501, client.threads.copy(thread)),
        (422, client.runs.create(thread, "lats", input=question(), after_seconds=3)),
        (422, client.threads.search(values={"answer": "42"})),
        (422, client.threads.count(values={"answer": "42"})),
    ):
        with pytest.raises(APIStatusError) as refused:
            await attempt
        assert refused.value.status_code == status
