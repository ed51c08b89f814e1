"""The live page's own requests, on either server."""

import asyncio
import json
from typing import Any
from uuid import uuid4

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


async def the_list_tells_what_runs_are_and_a_question_is_edited(client: httpx.AsyncClient) -> None:
    """Runs of other clients are named by their questions, and paused ones are called so."""
    other, root = str(uuid4()), str(client.base_url).rstrip("/").removesuffix("/live")
    messages = [{"role": "user", "content": "An unsolvable question from elsewhere"}]
    body = {"assistant_id": "lats", "if_not_exists": "create", "input": {"messages": messages}, "context": SETTINGS}
    assert (await client.post(f"{root}/threads/{other}/runs/wait", json=body)).status_code == 200
    paused = await ask(client, question="A slow and unsolvable question", settings={**SETTINGS, "max_expansions": 50})
    shown = (await client.get(f"/threads/{paused}")).json()
    assert [message["text"] for message in shown["messages"]] == ["A slow and unsolvable question"]
    while not shown["tree"]:
        await asyncio.sleep(0.2)
        shown = (await client.get(f"/threads/{paused}")).json()
    assert (await client.post(f"/threads/{paused}", json={"do": "pause"})).status_code == 200
    listed = {item["thread_id"]: item for item in (await client.get("/threads")).json()}
    assert [listed[other][name] for name in ("question", "status")] == [messages[0]["content"], "ended"]
    assert [listed[paused][name] for name in ("question", "status")] == ["A slow and unsolvable question", "paused"]
    [question, answer] = (await client.get(f"/threads/{other}")).json()["messages"]
    again = await ask(client, thread_id=other, files=[{"name": "a.txt", "text": "The Petrel was built in 1907."}])
    await events_of(client, again)
    *_, last, _ = (await client.get(f"/threads/{again}")).json()["messages"]
    edited = await ask(client, thread_id=other, edits=last["id"], question="Another unsolvable question")
    await events_of(client, edited)
    shown = (await client.get(f"/threads/{edited}")).json()["messages"]
    texts = [question["text"], answer["text"], "The Petrel was built in 1907.", "Another unsolvable question"]
    assert [message["text"] for message in shown[:-1]] == texts
    assert shown[2]["file"] == "a.txt"


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
