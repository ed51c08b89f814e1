"""What does not fit a JSON schema: said in words, by a process that ends before a check takes too long."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from bench.attack.schemas import OVERFLOWING, doubling, grammar
from reflective_agents.tools.schema_faults import SECONDS, schema_faults

pytestmark = pytest.mark.process

TOO_MUCH = [f"output: to check it takes more than {SECONDS:g} seconds or 512 MB"]


async def test_what_fits_has_no_faults() -> None:
    assert await schema_faults({"properties": {"a": {"type": "integer"}}}, {"a": 1}) == []


async def test_each_fault_says_where_and_what() -> None:
    schema = {"required": ["b"], "properties": {"a": {"items": {"type": "string"}}}}
    assert await schema_faults(schema, {"a": ["x", 7]}) == [
        'output: "b" is a required property',
        'a.1: 7 is not of type "string"',
    ]


async def test_five_faults_are_enough() -> None:
    assert len(await schema_faults({"items": {"type": "string"}}, list(range(9)))) == 5


async def test_a_pattern_is_matched_in_linear_time() -> None:
    pattern = {"type": "string", "pattern": "^(a+)+$"}
    assert await schema_faults(pattern, "a" * 50_000) == []
    (fault,) = await schema_faults(pattern, "a" * 50_000 + "!")
    assert len(fault) < 600


HOSTILE: list[Any] = [
    (doubling(40), {"x": "a"}),
    (doubling(40, {"type": "integer"}), {"x": "a"}),
    (doubling(40, {"type": "integer"}, "anyOf"), {"x": "a"}),
    ({**doubling(20), "allOf": [{"$ref": "#/$defs/a20"}], "unevaluatedProperties": False}, {"x": "a"}),
    (OVERFLOWING, {"x": {}}),
    (grammar(4), {"x": eval("{'l':" * 60 + "7" + "}" * 60)}),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("schema", "value"), HOSTILE, ids=range(len(HOSTILE)))
async def test_a_check_that_takes_too_much_is_a_fault_and_the_next_is_done(schema: Any, value: Any) -> None:
    found = await asyncio.gather(schema_faults(schema, value), *(schema_faults({}, {}) for _ in range(5)))
    assert found == [TOO_MUCH, *[[]] * 5]


@pytest.mark.parametrize(
    ("schema", "value"),
    [({"pattern": "(?=a)"}, "a"), ({"$ref": "http://127.0.0.1:9/a"}, {}), ({"enum": ["\ud800"]}, "a"), ({}, "\ud800")],
    ids=str,
)
async def test_what_cannot_be_compiled_is_a_fault(schema: Any, value: Any) -> None:
    (fault,) = await schema_faults(schema, value)
    assert fault.startswith("cannot be checked")


@pytest.mark.thorough
def test_every_loop_and_a_forked_process_can_check() -> None:
    assert asyncio.run(schema_faults({"type": "string"}, "a")) == []
    child = subprocess.run([sys.executable, "-W", "error", "-c", FORKING], capture_output=True, text=True, check=False)
    assert (child.stdout, child.stderr) == ("[]\n[]\n0\n", "")


FORKING = """
import asyncio, os, signal
from reflective_agents.tools.schema_faults import schema_faults

def check():
    print(asyncio.run(schema_faults({}, {})), flush=True)

check()
child = os.fork()
if child == 0:
    signal.alarm(30)
    check()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
