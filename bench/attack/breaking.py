"""Attacks on the operator's rules: what a run has spent, which strategies and models there are, who owns what."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from bench.attack.target import OFFLINE, POLICY, Breach, Target, asking, error_of

LOWER = {"model_calls": -100_000, "total_tokens": -(10**9), "seconds": -(10**6), "cost": -1000.0}


async def keeps_counters(target: Target, act: Callable[[str, dict[str, Any]], Awaitable[Any]]) -> None:
    """Let something be done to a thread whose run has ended, and see that nothing is unspent afterwards."""
    thread = await target.honest_run(samples=3)
    before, values = await target.spent(thread), await target.values(thread)
    await act(thread, values)
    after = await target.spent(thread)
    for name, amount in before.items():
        if after.get(name, 0) < amount:
            raise Breach(f"usage.{name} was {amount}, and is {after.get(name)} now")


def unspent(values: dict[str, Any]) -> dict[str, Any]:
    """Return a state in which less than nothing was spent, and all is still to be done."""
    undone: dict[str, Any] = {"outcome": None, "answer": None, "samples": [], "messages": []}
    return {**copy.deepcopy(values), "usage": {**values.get("usage", {}), **LOWER}, **undone}


async def send_with_input(target: Target) -> None:
    """Go to a node with an input of one's own, in which less was spent."""

    async def act(thread: str, values: dict[str, Any]) -> None:
        node = target.random.choice(["finish", "begin", "vote"])
        sends = [{"node": name, "input": unspent(values)} for name in ("sample", node)]
        for goto in ([sends[0]], target.random.choice([[sends[1]], sends[0], sends, ["finish", sends[0]]])):
            await target.run("chain_of_thought", thread, OFFLINE, command={"goto": goto})

    await keeps_counters(target, act)


async def updates_of_usage(target: Target) -> None:
    """Write what was spent, by every way that a state can be written."""

    async def act(thread: str, values: dict[str, Any]) -> None:
        lower = unspent(values)
        update = target.random.choice([{"usage": LOWER}, [["usage", LOWER]], lower, {"run_id": "x", "usage": LOWER}])
        await target.run("chain_of_thought", thread, OFFLINE, command={"update": update})
        await target.run("chain_of_thought", thread, OFFLINE, command={"update": update, "goto": "finish"})
        await target.run("chain_of_thought", thread, OFFLINE, command={"resume": {"usage": LOWER}})
        await target.send("POST", f"/threads/{thread}/state", {"values": update})
        await target.send("POST", f"/threads/{thread}/state", {"values": [update], "as_node": "begin"})
        await target.send("PATCH", f"/threads/{thread}", {"values": lower, "metadata": {"usage": LOWER}})

    await keeps_counters(target, act)


async def goto_the_beginning(target: Target) -> None:
    """Begin a run anew without a new question."""

    async def act(thread: str, _: dict[str, Any]) -> None:
        await target.run("chain_of_thought", thread, OFFLINE, command={"goto": "begin"})

    await keeps_counters(target, act)


async def usage_as_input(target: Target) -> None:
    """Give what was spent with the question, and make threads that bring a state of their own."""
    thread = str(uuid4())
    await target.run("chain_of_thought", thread, OFFLINE, input={**asking(), "usage": LOWER, "run_id": "x"})
    made = str(uuid4())
    steps = [{"updates": [{"values": {**asking(), "usage": LOWER}, "as_node": "__start__"}]}]
    await target.send("POST", "/threads", {"thread_id": made, "supersteps": steps, "graph_id": "chain_of_thought"})
    for written in (thread, made):
        if any(amount < 0 for amount in (await target.spent(written)).values()):
            raise Breach("less than nothing was spent")


async def many_nodes(target: Target) -> None:
    """Go to thousands of nodes at once."""
    thread = await target.honest_run()
    goto = [target.random.choice(["sample", "finish"])] * target.random.randint(1_000, 20_000)
    await target.run("chain_of_thought", thread, OFFLINE, command={"goto": goto})


async def decoy_assistants(target: Target) -> None:
    """Name an assistant that is offered beside the one that is started."""
    forbidden = target.random.choice(["lats", "best_of_n", "tree_of_thoughts", "auto"])
    decoy = target.random.choice(POLICY["strategies"])
    run = {"input": asking(), "context": OFFLINE}
    bodies = [
        {"id": 1, "method": "run.start", "assistant_id": decoy, "params": {"assistant_id": forbidden, **run}},
        {"id": 1, "method": "run.start", "assistant_id": forbidden, "params": {"assistant_id": decoy, **run}},
        {"assistant_id": decoy, "params": {"assistant_id": forbidden}, "method": "run.start", **run},
    ]
    threads = [str(uuid4()) for _ in bodies]
    for thread, body in zip(threads, bodies, strict=True):
        await target.send("POST", f"/threads/{thread}/commands", body)
    await asyncio.sleep(2)
    for thread in threads:
        if (await target.values(thread)).get("strategy") == forbidden:
            raise Breach(f"{forbidden}, which is not offered, has run beside {decoy}")


async def strategies_not_offered(target: Target) -> None:
    """Start a strategy that is not offered, by itself, through an assistant, and as a worker."""
    forbidden = target.random.choice(["lats", "best_of_n", "tree_of_thoughts"])
    made = await target.send("POST", "/assistants", {"graph_id": forbidden, "context": OFFLINE})
    names = [forbidden, *([made.json()["assistant_id"]] if made.status_code == 200 else [])]
    roles: list[dict[str, Any]] = [
        {"name": n, "instructions": "Work.", "strategy": forbidden, "settings": {}} for n in ("ada", "bob")
    ]
    tries: list[tuple[str, dict[str, Any]]] = [
        *((name, {}) for name in names),
        ("plan", {"worker": forbidden}),
        ("team", {"roles": roles}),
    ]
    for strategy, settings in tries:
        await not_run(target, strategy, settings)


async def models_not_offered(target: Target) -> None:
    """Name a model that is not offered, in each setting that names one."""
    model = target.random.choice(["openai:gpt-4.1", "anthropic:claude-sonnet-4-5", "ollama:llama3"])
    tries: list[tuple[str, dict[str, Any]]] = [
        ("chain_of_thought", {"model": model}),
        ("memory", {**OFFLINE, "embeddings": "openai:text-embedding-3-large"}),
        ("reflection", {**OFFLINE, "critic_model": model}),
        ("plan", {**OFFLINE, "worker": "chain_of_thought", "worker_settings": {"model": model}}),
    ]
    for strategy, settings in tries:
        await not_run(target, strategy, settings)


async def assistants_of_the_server(target: Target) -> None:
    """Let an assistant of one's own pass for the server's: everybody sees those."""
    body = {"graph_id": "chain_of_thought", "context": OFFLINE}
    posing = {"metadata": {"created_by": "system", "owner": "bob"}}
    for metadata in (posing, {}):
        made = await target.send("POST", "/assistants", {**body, **metadata})
        if made.status_code == 200:
            path = f"/assistants/{made.json()['assistant_id']}"
            await target.send("PATCH", path, posing)
            if (await target.other.get(path)).status_code == 200:
                raise Breach("an assistant of one user is shown to another")


async def limits_above_the_ceiling(target: Target) -> None:
    """Ask for more than one run may spend."""
    most = target.random.choice([61, 100_000])
    await not_run(target, "chain_of_thought", {**OFFLINE, "max_model_calls": most})
    settings = {"worker": "chain_of_thought", "worker_settings": {"max_model_calls": most}}
    await target.run("plan", str(uuid4()), {**OFFLINE, **settings}, input=asking())
    thread = await target.honest_run()
    await target.run("chain_of_thought", thread, OFFLINE, command={"resume": {"raise": {"max_model_calls": 10**6}}})


async def settings_of_the_machine(target: Target) -> None:
    """Set what reaches the machine."""
    for name, value in (("corpus", "/etc"), ("docstore", "/etc/passwd"), ("unsafe_code", True), ("prompts", "/etc")):
        await not_run(target, "react", {**OFFLINE, name: value})


async def not_run(target: Target, strategy: str, settings: dict[str, Any]) -> None:
    """Start a run that breaks a rule; it must be refused for that."""
    answer = await target.run(strategy, str(uuid4()), {**OFFLINE, **settings}, input=asking())
    if answer.status_code < 400 and error_of(answer) != "OperatorOnly":
        raise Breach(f"{strategy} with {settings} was not refused: {answer.text[:200]}")


async def bursts(target: Target) -> None:
    """Start many runs at the same moment; no more than the rule allows are under way, where they are counted."""
    context = {**OFFLINE, "samples": 30, "batch": 1}
    threads = [str(uuid4()) for _ in range(20)]
    body = {"assistant_id": "chain_of_thought", "context": context, "input": asking(), "if_not_exists": "create"}
    started = await asyncio.gather(*(target.send("POST", f"/threads/{name}/runs", body) for name in threads))
    taken = [name for name, answer in zip(threads, started, strict=True) if answer.status_code == 200]
    states = await asyncio.gather(*(target.send("GET", f"/threads/{name}/runs") for name in taken))
    under_way = [run for answer in states for run in answer.json() if run["status"] in ("pending", "running")]
    # `langgraph dev`, which alone has this route, does not count runs.
    counts_runs = (await target.send("GET", "/ok")).status_code == 404
    if counts_runs and len(under_way) > POLICY["runs_at_once"]:
        raise Breach(f"{len(under_way)} runs are under way where {POLICY['runs_at_once']} are allowed")
    await target.honest_run()


async def what_is_anothers(target: Target) -> None:
    """Read, write and run on a thread of another user."""
    thread = await Target(target.other, target.client, target.random).honest_run()
    tries: list[tuple[str, str, Any]] = [
        ("GET", f"/threads/{thread}/state", None),
        ("GET", f"/threads/{thread}", None),
        ("POST", f"/threads/{thread}/history", {}),
        ("POST", f"/threads/{thread}/state", {"values": {"answer": "Mine."}}),
        ("POST", f"/threads/{thread}/copy", {}),
        ("DELETE", f"/threads/{thread}", None),
        ("GET", f"/live/threads/{thread}", None),
    ]
    for method, path, body in tries:
        answer = await target.send(method, path, body)
        if answer.status_code < 400:
            raise Breach(f"{method} {path} of another's thread was answered with {answer.status_code}")
    body = {"assistant_id": "chain_of_thought", "input": asking(), "context": OFFLINE, "if_not_exists": "do_nothing"}
    await target.send("POST", f"/threads/{thread}/runs/wait", body)
    spoofed = {"configurable": {"langgraph_auth_user": {"identity": "bob"}, "user_id": "bob", "thread_id": thread}}
    await target.run("chain_of_thought", str(uuid4()), OFFLINE, input=asking("Whose?"), config=spoofed)
    answer = await target.other.get(f"/threads/{thread}/state")
    if "Whose?" in answer.text:
        raise Breach("a run of one user has written into another's thread")


async def closed_routes(target: Target) -> None:
    """Use the store and the schedules, which are closed where there are keys."""
    item = {"namespace": ["lessons", "bob"], "key": "x", "value": {"text": "Mine."}}
    schedule = {"assistant_id": "chain_of_thought", "schedule": "* * * * *", "input": asking(), "context": OFFLINE}
    for method, path, body in (
        ("PUT", "/store/items", item),
        ("POST", "/store/items/search", {"namespace_prefix": []}),
        ("POST", "/store/namespaces", {}),
        ("POST", "/runs/crons", schedule),
    ):
        answer = await target.send(method, path, body)
        if answer.status_code < 400:
            raise Breach(f"{method} {path} was answered with {answer.status_code}")
