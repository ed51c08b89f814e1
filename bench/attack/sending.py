"""Attacks with what is sent: schemas, tools, prompts, characters, nesting, numbers, good requests changed."""

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any
from uuid import uuid4

from bench.attack.schemas import OVERFLOWING, doubling, grammar, mesh
from bench.attack.target import OFFLINE, Breach, Target, asking

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
HALF = "\ud800"
PARTS: Sequence[Any] = (
    None, True, "", HALF, "\0", "../..", "x" * 50_000, -1, 10**30, 1e308, float("nan"), float("inf"), [], {},
    [[]] * 500, {"$ref": "#"}, "{task:>9999999}", "command", [{}], {"__proto__": 1}, eval("[" * 90 + "]" * 90),
)  # fmt: skip
"""What takes the place of a part of a good request."""


def chat(**fields: Any) -> dict[str, Any]:
    """Return the body of a chat completion."""
    return {"model": "chain_of_thought:offline", "messages": asking()["messages"], **fields}


def formed(schema: Any) -> dict[str, Any]:
    """Return the body of a chat completion in a form."""
    return chat(response_format={"type": "json_schema", "json_schema": {"name": "form", "schema": schema}})


def tooled(schema: Any) -> dict[str, Any]:
    """Return the body of a chat completion with a tool of the client's."""
    tool = {"type": "function", "function": {"name": "weather", "parameters": schema}}
    return chat(model="react:offline", tools=[tool])


async def refused(target: Target, body: Mapping[str, Any], path: str = CHAT) -> None:
    """Send a chat completion, or a response, that has to be refused."""
    answer = await target.send("POST", path, body)
    if not 400 <= answer.status_code < 500:
        raise Breach(f"what stands for too much was answered with {answer.status_code}: {answer.text[:200]}")


async def doubling_schemas(target: Target) -> None:
    """Double a schema with each of its definitions."""
    count, keyword = target.random.randint(14, 400), target.random.choice(["allOf", "anyOf", "oneOf"])
    schema = doubling(count, {"type": target.random.choice(["string", "integer", "null"])}, keyword)
    await refused(target, formed(schema))
    await refused(target, tooled(schema))
    await target.run("chain_of_thought", str(uuid4()), {**OFFLINE, "answer_schema": schema}, input=asking())


async def deep_and_wide_schemas(target: Target) -> None:
    """Nest schemas, let all parts refer to all, and bring more patterns than anybody needs."""
    patterns = {f"x{number}": {"pattern": rf"\w{{20}}{number}"} for number in range(target.random.randint(200, 900))}
    deep = eval("{'not':" * 90 + "{}" + "}" * 90)
    for schema in (mesh(target.random.randint(10, 30)), {"properties": patterns}, {"properties": {"x": deep}}):
        await refused(target, formed({"type": "object", **schema}))
        await refused(target, tooled({"type": "object", **schema}))


async def schemas_that_overflow(target: Target) -> None:
    """Bring schemas that are small, and make validators recurse or work for ever."""
    whole = {"type": "object", "allOf": [{"$ref": "#"}]}
    for schema in (OVERFLOWING, whole, grammar(target.random.randint(4, 9)), doubling(target.random.randint(5, 9))):
        await target.send("POST", CHAT, formed(schema))
        await target.send("POST", CHAT, tooled(schema))


async def forms_without_end(target: Target) -> None:
    """Ask for arrays and texts that fill the memory."""
    many: dict[str, Any] = {"type": "string", "minLength": 10 ** target.random.randint(6, 12)}
    for _ in range(target.random.randint(1, 6)):
        many = {"type": "array", "minItems": target.random.randint(100, 10**9), "items": many}
    await target.send("POST", CHAT, formed({"type": "object", "properties": {"x": many, "y": True, "z": {"enum": []}}}))


async def prompts_that_grow(target: Target) -> None:
    """Give prompts whose placeholders, messages or characters are too many."""
    words = "{task}{form}{lessons}"
    growing = (
        words + f"{{task:>{10 ** target.random.randint(6, 12)}}}",
        words * target.random.randint(1_000, 9_000),
        [["system", words]] * target.random.randint(1_000, 9_000),
    )
    for prompt in growing:
        settings = {"prompts": {"chain_of_thought.SOLVE": prompt}}
        answer = await target.send("POST", CHAT, chat(settings=settings))
        if answer.status_code == 200:
            raise Breach("a prompt that grows was used")


async def halves_of_characters(target: Target) -> None:
    """Put halves of surrogate pairs, and the null that Postgres refuses, into all places."""
    odd = target.random.choice([HALF, "\udfff", "\0", f"a{HALF}\0b"])
    await target.send("POST", CHAT, chat(messages=asking(odd)["messages"]))
    await target.send("POST", CHAT, chat(model=odd))
    await target.send("POST", CHAT, formed({"type": "object", "properties": {odd: {"enum": [odd]}}}))
    await target.run("chain_of_thought", str(uuid4()), {**OFFLINE, "language": odd}, input=asking(odd))
    await target.run("chain_of_thought", str(uuid4()), OFFLINE, input=asking(), metadata={odd: odd})
    await target.run(odd, str(uuid4()), OFFLINE, input=asking())
    await target.send("POST", "/threads", {"metadata": {"x": odd}})
    await target.send("POST", "/threads/search", {"metadata": {"x": odd}})


async def nested_bodies(target: Target) -> None:
    """Nest a body deeper than Python can follow."""
    depth = target.random.choice([200, 900, 5_000, 100_000])
    nested = target.random.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth])
    for path in (CHAT, "/threads", f"/threads/{uuid4()}/runs/wait", f"/threads/{uuid4()}/commands"):
        for raw in (nested, f'{{"model":"lats","assistant_id":"react","input":{nested},"metadata":{nested}}}'):
            await target.send("POST", path, raw=raw)


async def large_bodies(target: Target) -> None:
    """Send more than any request needs: bytes, lists and objects."""
    count = target.random.randint(200_000, 1_000_000)
    dense = target.random.choice(["[" + "[]," * count + "1]", "[" + '{"a":1},' * count + "1]", "]" * count])
    for path in (CHAT, "/threads", "/mcp", f"/threads/{uuid4()}/runs/wait"):
        for raw in (dense, f'{{"metadata":{dense}}}', json.dumps("x" * 6_000_001)):
            answer = await target.send("POST", path, raw=raw)
            if answer.status_code != 413:
                raise Breach(f"a body of {len(raw):,} characters was answered by {path} with {answer.status_code}")


async def many_names(target: Target) -> None:
    """Give settings, prompts, models and fields by thousands of names, and by endless ones, that nothing has."""
    names = {f"k{number}": "x" for number in range(target.random.randint(5_000, 12_000))}
    long = "k" * target.random.randint(10**6, 5 * 10**6)
    for body in (chat(settings=names), chat(settings={long: 1}), chat(**names), chat(model=long)):
        await refused(target, body)
    for settings in (names, {long: 1}, {"prompts": names}, {"prompts": {long: "x"}}, {"worker_settings": names}):
        await target.run("plan", str(uuid4()), {**OFFLINE, **settings}, input=asking())


async def items_without_end(target: Target) -> None:
    """Give a response, or a completion, ever so many parts: most are wrong, or refer to what is nowhere."""
    count = target.random.randint(2_000, 3_000)
    nowhere = base64.urlsafe_b64encode(target.random.randbytes(32)).decode().rstrip("=")
    output = {"type": "function_call_output", "call_id": "a", "output": "b"}
    items = [[1] * 16 * count, [{"type": "x" * 10**6}], [{"id": f"msg_{nowhere}"}] * count, [output] * count]
    for given in target.random.sample(items, 2):
        await refused(target, {"model": "chain_of_thought:offline", "input": given}, RESPONSES)
    for fields in ({"messages": [1] * 16 * count}, {"tools": [1] * 16 * count}):
        await refused(target, chat(**fields))
    for key in (nowhere, f"resp_{nowhere}", "resp_" + "A" * 10**6, HALF):
        body = {"model": "chain_of_thought:offline", "input": "Why?", "previous_response_id": key}
        await refused(target, body, RESPONSES)


async def states_of_no_checkpoint(target: Target) -> None:
    """Ask for the state at something that is no checkpoint, and for threads by what is no list, and no object."""
    thread = await target.honest_run()
    odd = target.random.choice([*PARTS[:8], [1]])
    for checkpoint in (odd, {"checkpoint_id": [1]}):
        await target.send("POST", f"/threads/{thread}/state/checkpoint", {"checkpoint": checkpoint})
    for path in ("/threads/search", "/threads/count"):
        for name in ("select", "metadata", "limit", "offset", "ids", "values"):
            await target.send("POST", path, {name: odd})


async def odd_addresses(target: Target) -> None:
    """Put control characters, and halves of characters, into addresses."""
    odd = target.random.choice(["%00", "x%0A", "%ed%a0%80", "%7f"])
    for method, path in (
        ("GET", f"/threads/{odd}/state"),
        ("GET", f"/assistants/{odd}"),
        ("DELETE", f"/threads/{odd}"),
        ("GET", f"/threads/{uuid4()}/runs/{odd}/stream"),
        ("GET", f"/assistants/{odd}/graph"),
    ):
        await target.send(method, path)
    for thread in ("x\n", "\t"):
        await refused(target, chat(thread_id=thread))


async def configurations_that_no_run_has(target: Target) -> None:
    """Configure what LangGraph reads beside settings."""
    wrong: list[dict[str, Any]] = [
        {"recursion_limit": 0},
        {"recursion_limit": "x"},
        {"max_concurrency": -1},
        {"callbacks": [1]},
        {"tags": 7},
    ]
    for config in wrong:
        answer = await target.run("chain_of_thought", str(uuid4()), OFFLINE, input=asking(), config=config)
        if answer.status_code == 200:
            raise Breach(f"a run began with {config}")


async def numbers_beyond(target: Target) -> None:
    """Give numbers that no clock and no counter shows."""
    number = target.random.choice(
        ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "9" * 5_000, "-1", "0", "1e-320"]
    )
    for setting in ("max_seconds", "max_model_calls", "temperature", "samples", "max_cost", "call_timeout"):
        context = f'{{"model": "offline", "{setting}": {number}}}'
        raw = f'{{"assistant_id": "chain_of_thought", "if_not_exists": "create", "context": {context}, "input": {{}}}}'
        await target.send("POST", f"/threads/{uuid4()}/runs/wait", raw=raw)


async def nearly_right_requests(target: Target) -> None:
    """Replace parts of good requests by others."""
    thread = str(uuid4())
    run = {"assistant_id": "chain_of_thought", "context": OFFLINE, "input": asking(), "if_not_exists": "create"}
    start = {"id": 1, "method": "run.start", "params": run}
    good: list[tuple[str, dict[str, Any]]] = [
        (CHAT, chat(settings={"samples": 2}, stream=False)),
        (RESPONSES, {"model": "chain_of_thought:offline", "input": asking()["messages"], "store": True, "tools": []}),
        (f"/threads/{thread}/runs/wait", {**run, "config": {"configurable": {}, "recursion_limit": 50}}),
        (f"/threads/{thread}/runs", {**run, "multitask_strategy": "reject", "stream_mode": ["values"]}),
        (f"/threads/{thread}/commands", start),
        (f"/threads/{thread}/state", {"values": {"answer": "Mine."}, "as_node": "finish"}),
        ("/threads", {"thread_id": str(uuid4()), "metadata": {}, "if_exists": "do_nothing"}),
        ("/threads/search", {"metadata": {}, "limit": 2, "offset": 0}),
        ("/assistants", {"graph_id": "react", "config": {}, "context": OFFLINE, "metadata": {}}),
        ("/assistants/search", {"graph_id": "react", "limit": 2, "metadata": {}}),
        ("/live/threads", {"strategy": "chain_of_thought", "question": "Why?", "settings": OFFLINE}),
    ]
    for path, body in target.random.sample(good, 4):
        await target.send("POST", path, mutated(body, target.random))


def mutated(body: Any, random: Random) -> Any:
    """Return a body of which one to three parts, names or values, are replaced."""
    changed = copy.deepcopy(body)
    for _ in range(random.randint(1, 3)):
        at = changed
        while (
            isinstance(inner := at[key := random.choice(list(_keys(at)))], dict | list)
            and inner
            and random.random() < 0.7
        ):
            at = inner
        if isinstance(at, dict) and random.random() < 0.2:
            at[random.choice(["usage", "run_id", "command", HALF, "configurable"])] = at.pop(key)
        else:
            at[key] = copy.deepcopy(random.choice(PARTS))
    return changed


def _keys(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, dict) else range(len(value))
