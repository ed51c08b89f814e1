"""Requests of strangers, before and while they are read: large, dense, full of names."""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from reflective_agents.graphs.chain_of_thought import graph
from reflective_agents.serve.bodies import BYTES, cleaned
from reflective_agents.serve.chat_request import parse
from reflective_agents.serve.refusals import Refused
from reflective_agents.serve.responses_request import parse as parse_response
from reflective_agents.serve.run_key import RunKey
from reflective_agents.state.errors import Misuse

pytestmark = [pytest.mark.hostile, pytest.mark.process]

ASK: Any = {"messages": [("user", "What is LATS?")]}
MANY = {f"k{number}": "x" for number in range(9_000)}
LONG = {"k" * (BYTES - 100): "x"}


PARTS = (rb"\u0000", rb"\ud800", rb"\ude00", rb"\ud83d\ude00", rb"\\", b'"', b"]", b"[],", b"9")


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("part", PARTS)
async def test_a_body_is_read_at_once(part: bytes) -> None:
    many = part * (BYTES // len(part))
    for body in (b'"' + many + b'"', many):
        with suppress(Refused):
            cleaned(body)
        await asyncio.sleep(0.01)  # each body is a request of its own


@pytest.mark.matrix
@pytest.mark.parametrize("names", [MANY, LONG], ids=["many", "long"])
async def test_names_that_nothing_has_are_refused_at_once(names: dict[str, str]) -> None:
    body = {"model": "chain_of_thought", "messages": [{"role": "user", "content": "Why?"}]}
    for request in ({**body, "settings": names}, {**body, "model": next(iter(names)) + "x"}, {**body, **names}):
        with pytest.raises(Refused) as refused:
            parse(request).context()
        assert len(str(refused.value)) < 1000
        await asyncio.sleep(0.01)  # each is a request of its own
    with pytest.raises(ValidationError) as error:
        await graph.ainvoke(ASK, context={"model": "offline", **names})
    assert error.value.error_count() <= 10
    await asyncio.sleep(0.01)
    with pytest.raises(Misuse):
        await graph.ainvoke(ASK, context={"model": "offline", "prompts": names})


OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "b"}
PARTS_OF_LISTS: list[tuple[str, object]] = [
    ("messages", [1] * 45_000),
    ("messages", [{"role": "user", "content": [1] * 45_000}]),
    ("tools", [1] * 45_000),
    ("input", [1] * 45_000),
    ("input", [OUTPUT] * 2_800),
    ("input", [{"type": "item_reference", "id": RunKey(str(UUID(int=1)), str(UUID(int=2))).id("msg")}] * 3_000),
    ("input", [{"type": "x" * 5_000_000}]),
]


@pytest.mark.parametrize(("name", "value"), PARTS_OF_LISTS, ids=range(len(PARTS_OF_LISTS)))
async def test_a_list_of_ever_so_many_is_read_at_once(name: str, value: object) -> None:
    body = {"model": "chain_of_thought", "messages": [{"role": "user", "content": "Why?"}], name: value}
    refusal = ""
    try:
        if name == "input":
            given = parse_response({"model": "chain_of_thought", "input": value})
            given.references()
            given.chat()
        else:
            parse(body)
    except Refused as refused:
        refusal = str(refused)
    assert len(refusal) <= 1_000
