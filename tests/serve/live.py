"""The live page's own requests, on either server."""

import asyncio
import json
from typing import Any

import httpx

QUESTION = "An unsolvable question"
SETTINGS: dict[str, Any] = {"n": 2, "max_expansions": 3, "search": "none"}


def browser(address: str, key: str = "") -> httpx.AsyncClient:
    """Return what a browser is that knows a key."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return httpx.AsyncClient(base_url=f"{address}/live", headers=headers, timeout=240)


async def ask(client: httpx.AsyncClient, strategy: str = "lats", **more: Any) -> str:
    body = {"strategy": strategy, "question": QUESTION, "settings": SETTINGS, **more}
    answer = await client.post("/threads", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["thread_id"])


async def events_of(client: httpx.AsyncClient, thread: str) -> list[dict[str, Any]]:
    """What the last run of a thread tells, to its end."""
    async with client.stream("GET", f"/threads/{thread}/events") as stream:
        return [json.loads(line[6:]) async for line in stream.aiter_lines() if line.startswith("data: ")]


async def early_and_late_hear_the_same(client: httpx.AsyncClient) -> None:
    thread = await ask(client)
    early = asyncio.create_task(events_of(client, thread))
    while not (seen := (await client.get(f"/threads/{thread}")).json())["tree"]:  # noqa: ASYNC110
        await asyncio.sleep(0.2)
    late = await events_of(client, thread)
    assert late == await early
    numbers = [part["seq"] for part in late if "seq" in part]
    assert numbers == [*range(1, len(numbers) + 1)]
    assert late[-1] == {"ended": "success", "error": ""}
    after = (await client.get(f"/threads/{thread}")).json()
    node_ids = {part["id"] for part in late if part.get("event") == "node"}
    assert after["tree"]["nodes"].keys() == node_ids
    assert seen["tree"]["nodes"].keys() <= node_ids
    assert (after["status"], after["steps"], after["outcome"]["status"]) == ("ended", 4, "limit_reached")


async def steered_by_two(client: httpx.AsyncClient) -> None:
    """The second of two people who have seen the same is told, and what the first has ordered is done."""
    thread = await ask(client)
    await events_of(client, thread)
    first = await client.post(f"/threads/{thread}", json={"do": "prune", "node": "0.1", "seen": 0})
    assert first.status_code == 200, first.text
    await events_of(client, thread)
    second = await client.post(f"/threads/{thread}", json={"do": "rescore", "node": "0.1", "score": 1, "seen": 0})
    assert (second.status_code, "somebody else" in second.text) == (409, True)
    more = {"do": "more", "limits": {"max_expansions": 1}, "seen": 1}
    assert (await client.post(f"/threads/{thread}", json=more)).status_code == 200
    while_running = await client.post(f"/threads/{thread}", json={"do": "prune", "node": "0.0", "seen": 1})
    assert while_running.status_code == 409
    await events_of(client, thread)
    after = (await client.get(f"/threads/{thread}")).json()
    assert after["changes"] == 2
    events = [frame["event"] for frame in after["tree"]["frames"]]
    assert events == ["start", "expand", "expand", "expand", "prune", "more", "expand"]
    fork = {"do": "fork", "step": 3, "seen": 2}
    assert (await client.post(f"/threads/{thread}", json=fork)).status_code == 200
    await events_of(client, thread)
    forked = (await client.get(f"/threads/{thread}")).json()
    assert [frame["event"] for frame in forked["tree"]["frames"]] == ["start", "expand", "expand", "expand"]
    assert len(forked["messages"]) == 2
    again = await ask(client, thread_id=thread)
    await events_of(client, thread)
    assert (again, len((await client.get(f"/threads/{thread}")).json()["messages"])) == (thread, 4)


async def nobody_sees_what_is_anothers(owner: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    thread = await ask(owner)
    for who, code in ((owner, 200), (other, 404)):
        assert (await who.get(f"/threads/{thread}")).status_code == code
        assert (await who.get(f"/threads/{thread}/passages?url=corpus:lats.md")).status_code == code
        async with who.stream("GET", f"/threads/{thread}/events") as stream:
            assert stream.status_code == code
    for do in ({"do": "pause"}, {"do": "resume"}, {"do": "prune", "node": "0.0", "seen": 0}):
        assert (await other.post(f"/threads/{thread}", json=do)).status_code == 404
    body = {"strategy": "lats", "question": QUESTION, "settings": SETTINGS, "thread_id": thread}
    assert (await other.post("/threads", json=body)).status_code in (404, 409)
    assert (await other.post("/threads", json={**body, "edits": "1"})).status_code == 404
    await events_of(owner, thread)
    mine, others = [(await who.get("/threads")).json() for who in (owner, other)]
    assert thread in {item["thread_id"] for item in mine}
    assert thread not in {item["thread_id"] for item in others}
    async with httpx.AsyncClient(base_url=owner.base_url) as nobody:
        codes = [(await nobody.get(path)).status_code for path in ("/threads", f"/threads/{thread}", "/strategies")]
        assert codes == [401, 401, 401]
        assert (await nobody.post("/threads", json=body)).status_code == 401
        assert thread not in (await nobody.get("")).text
