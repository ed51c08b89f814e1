"""What nobody gets the engine to do, by whatever route: checked alike on both servers, which ask for `rights.KEYS`."""

import asyncio
import re
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from tests.serve.rights import KEYS, OFFLINE, asking

EXAMPLES = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs/serving.md").read_text(), re.DOTALL)
CLOSED = "town"
"""A strategy that the rules do not offer."""
FORGED = {"model_calls": -100_000, "total_tokens": -(10**9), "seconds": -(10.0**6), "cost": -1000.0}


def caller(address: str, user: str = "ann") -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=address, headers={"authorization": f"Bearer {KEYS[user]}"}, timeout=60)


async def answered(ann: LangGraphClient, strategy: str = "chain_of_thought") -> str:
    """Return a thread on which a question was answered."""
    thread = str((await ann.threads.create())["thread_id"])
    await ann.runs.wait(thread, strategy, input=asking(), context={"model": "offline"})
    return thread


async def state(ann: LangGraphClient, thread: str) -> dict[str, Any]:
    state: Any = await ann.threads.get_state(thread)
    return dict(state)


def refused(answer: httpx.Response) -> bool:
    """Tell whether a request was refused, by its status or within a protocol that answers errors with 200."""
    if answer.status_code != 200:
        return answer.status_code in (400, 401, 403, 404, 405, 422)
    return any(sign in answer.text for sign in ('"error"', '"isError":true'))


async def no_route_starts_what_is_not_offered(address: str, starts: list[tuple[str, str]]) -> None:
    """Send a body that asks every engine for a strategy that is not offered, behind one that is."""
    assert starts
    async with caller(address) as http:
        for method, path in starts:
            thread, assistant = str(uuid4()), str(uuid5(UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8"), CLOSED))
            run = {"assistant_id": CLOSED, "input": asking(), "if_not_exists": "create"}
            part = {"kind": "text", "text": "Why?"}
            message = {"role": "user", "parts": [part], "messageId": thread, "kind": "message"}
            bodies: list[Any] = [
                {**run, "id": 1, "method": "run.start", "params": run},
                {**run, "model": CLOSED, "messages": asking()["messages"]},
                {"model": CLOSED, "messages": asking()["messages"]},
                {"model": CLOSED, "input": "Why?"},
                {"model": CLOSED, "messages": asking()["messages"], "max_tokens": 100},
                {"strategy": CLOSED, "question": "Why?"},
                [run],
                {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}},
                {
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": CLOSED, "arguments": {"question": "Why?"}},
                },
            ]
            if path.endswith("/commands"):
                bodies.append({"assistant_id": "chain_of_thought", "id": 1, "method": "run.start", "params": run})
            if "crons" in path:
                bodies = [{**run, "schedule": "* * * * *"}]
            url = (
                path.replace("{thread_id}", thread)
                .replace("{thread:uuid}", thread)
                .replace("{assistant_id}", assistant)
            )
            for body in bodies:
                answer = await http.request(
                    "POST" if method == "ANY" else method,
                    url,
                    json=body,
                    headers={"accept": "application/json, text/event-stream"},
                )
                assert refused(answer), (path, body, answer.status_code, answer.text[:200])
        for thread in [item["thread_id"] for item in (await http.post("/threads/search", json={"limit": 100})).json()]:
            values = (await http.get(f"/threads/{thread}/state")).json().get("values") or {}
            assert values.get("strategy") != CLOSED
            assert (await http.get(f"/threads/{thread}")).json()["metadata"].get("graph_id") != CLOSED


async def nobody_writes_what_limits_rest_on(ann: LangGraphClient, address: str) -> None:
    """Write the counters, the run's id, its version and raised limits, in every form that the engines read."""
    thread = await answered(ann)
    before = (await state(ann, thread))["values"]
    forged = {**before, "usage": FORGED, "outcome": None, "samples": []}
    report = {"usage": FORGED, "number": 1, "name": "x"}
    written: list[Any] = [
        {"usage": FORGED},
        {"run_id": "another"},
        {"version": 1},
        {"raised": {"max_model_calls": 1000}},
        {"reports": [report]},
        {"answer": "Mine.", "usage": {}},
        [["usage", FORGED]],
        [["answer", "Mine."], ["raised", {"max_model_calls": 9}]],
        {"__pregel_tasks": [{"node": "sample", "arg": forged}]},
    ]
    commands = [{"update": update, "goto": "finish"} for update in written]
    commands += [
        {"goto": {"node": "sample", "input": forged}},
        {"goto": ["finish", {"node": "sample", "input": forged}]},
    ]
    async with caller(address) as http:
        for command in commands:
            run = {"assistant_id": "chain_of_thought", "command": command, "context": OFFLINE}
            for path in (f"/threads/{thread}/runs", f"/threads/{thread}/runs/wait", f"/threads/{thread}/runs/stream"):
                answer = await http.post(path, json=run)
                assert answer.status_code in (403, 422), (path, command, answer.text[:200])
            respond = {
                "id": 1,
                "method": "input.respond",
                "params": {**command, "response": "x", "interrupt_id": "0" * 32},
            }
            assert refused(await http.post(f"/threads/{thread}/commands", json=respond))
        for values in written:
            for node in (None, "__copy__", "__input__", "sample"):
                body = {"values": values, **({"as_node": node} if node else {})}
                answer = await http.post(f"/threads/{thread}/state", json=body)
                assert answer.status_code in (403, 422), (body, answer.text[:200])
        nested = {"values": {"answer": "x"}, "checkpoint": {"checkpoint_ns": "member:1", "thread_id": thread}}
        assert (await http.post(f"/threads/{thread}/state", json=nested)).status_code in (403, 422)
        for configurable in ({"__pregel_task_id": "1"}, {"checkpoint_ns": "a|b"}, {"checkpoint_map": {"": "1"}}):
            run = {"assistant_id": "chain_of_thought", "input": asking(), "config": {"configurable": configurable}}
            assert (await http.post(f"/threads/{thread}/runs", json=run)).status_code == 403, configurable
            assistant = {"graph_id": "chain_of_thought", "config": {"configurable": configurable}}
            assert (await http.post("/assistants", json=assistant)).status_code == 403, configurable
    assert (await state(ann, thread))["values"] == before
    await ann.threads.update_state(thread, {"answer": "Mine."})
    assert (await state(ann, thread))["values"] == {**before, "answer": "Mine."}


async def who_goes_back_has_spent_what_he_has_spent(ann: LangGraphClient) -> None:
    """Resume a turn from before its calls: they stay charged. An earlier turn is not resumed at all."""
    thread = await answered(ann)
    spent = (await state(ann, thread))["values"]["usage"]["model_calls"]
    early = await first_of_turn(ann, thread)
    assert (early["values"]["usage"]["model_calls"], spent) == (0, 1)
    begins: list[dict[str, Any]] = [{"command": {"update": {"samples": []}}}, {}]
    for begin in begins:
        await ann.runs.wait(thread, "chain_of_thought", checkpoint=early["checkpoint"], context=OFFLINE, **begin)
        spent += 1
        assert (await state(ann, thread))["values"]["usage"]["model_calls"] == spent
    assert await status(ann.threads.update_state(thread, {"answer": "x"}, checkpoint=early["checkpoint"])) == 403
    assert (
        await status(ann.threads.update_state(thread, None, as_node="__copy__", checkpoint=early["checkpoint"])) == 403
    )
    await ann.runs.wait(thread, "chain_of_thought", input=asking("And why?"), context=OFFLINE)
    end = (await state(ann, thread))["values"]
    await ended_in_error(ann, thread, early)
    assert (await state(ann, thread))["values"] == end
    # From there a new question may be asked: it is a turn of its own.
    start: Any = {"input": asking("Why else?"), "checkpoint": early["checkpoint"]}
    await ann.runs.wait(thread, "chain_of_thought", context=OFFLINE, **start)
    assert (await state(ann, thread))["values"]["usage"]["model_calls"] == 1


async def first_of_turn(ann: LangGraphClient, thread: str) -> dict[str, Any]:
    """Return the first state of a thread's turn in which it has begun."""
    history: Any = await ann.threads.get_history(thread, limit=100)
    return [dict(entry) for entry in history if (entry["values"] or {}).get("run_id")][-1]


async def ended_in_error(ann: LangGraphClient, thread: str, early: dict[str, Any]) -> None:
    run = await ann.runs.create(thread, "chain_of_thought", checkpoint=early["checkpoint"], context=OFFLINE)
    await ann.runs.join(thread, run["run_id"])
    assert (await ann.runs.get(thread, run["run_id"]))["status"] == "error"


async def status(attempt: Any) -> int:
    """Return the HTTP status that an attempt is refused with; 200 if it is not."""
    try:
        await attempt
    except APIStatusError as error:
        return error.status_code
    return 200


async def a_thread_is_streamed_by_the_newest_protocol(address: str) -> None:
    """Run the example of the docs, which asks by `threads.stream`; and have settings refused."""
    scope: dict[str, Any] = {}
    exec(next(code for code in EXAMPLES if "threads.stream" in code), scope)
    async with get_client(url=address, headers={"authorization": f"Bearer {KEYS['ann']}"}) as ann:
        async with asyncio.timeout(60):
            output = await scope["stream"](ann)
        assert (output["strategy"], output["settings"]) == ("lats", {"max_expansions": 5})
        async with caller(address) as http:
            for settings, reason in (
                ({"samples": "many"}, "samples"),
                ({"colour": "red"}, "colour"),
                ({"model": "openai:gpt-5"}, "not offered"),
                ({"corpus": "/etc"}, "corpus"),
                ({"verifiers": [{"reward": "http://127.0.0.1:1"}]}, "verifiers"),
                ({"verifiers": [{"command": ["/etc/passwd"]}]}, "verifiers"),
                ({"verifiers": [{"tests": "/etc/passwd", "entry_point": "f"}]}, "verifiers"),
                ({"verifiers": [{"rubric": ["So."], "model": "offline"}]}, "verifiers"),
                ({"verifiers": [{"pattern": "(?=a)"}]}, "verifiers"),
            ):
                run = {"assistant_id": "chain_of_thought", "input": asking(), "config": {"configurable": settings}}
                command = {"id": 7, "method": "run.start", "params": run}
                answer = await http.post(f"/threads/{uuid4()}/commands", json=command)
                assert refused(answer), answer.text
                assert reason in answer.text, answer.text
