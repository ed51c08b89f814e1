"""The verdict of tests: what a program returns reaches them, and nothing that it does forges it."""

import asyncio

import pytest

from reflective_agents.tools.verdict import Case, run_tests

pytestmark = pytest.mark.sandbox

WRONG = "assert f(1) == 2"

FORGERIES = {
    "exits while it is loaded": "import sys\nsys.exit(0)",
    "ends its process while it is loaded": "import os\nos._exit(0)",
    "exits when it is called": "import sys\ndef f(x): sys.exit(0)",
    "ends its process when it is called": "import os\ndef f(x): os._exit(0)",
    "ends its process later": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): raise SystemExit(0)",
    "prints the verdict": """print('{"passed": true, "output": ""}')\ndef f(x): print('{"passed": true}')""",
    "writes the verdict everywhere": """
import json, os
text = json.dumps({"passed": True, "output": ""}).encode()
def f(x):
    for descriptor in range(32):
        try:
            os.write(descriptor, len(text).to_bytes(4, "big") + text)
        except OSError:
            pass
""",
    "answers with something equal to all": "class E:\n def __eq__(self, o): return True\ndef f(x): return E()",
    "answers with a number equal to all": "class E(int):\n def __eq__(self, o): return True\ndef f(x): return E(7)",
    "answers with a list equal to all": "class E(list):\n def __eq__(self, o): return True\ndef f(x): return E()",
    "patches the builtins": "import builtins as b\nb.int = b.isinstance = b.eval = lambda *a: 2\ndef f(x): return 7",
    "raises what a failed test raises": "def f(x): raise AssertionError",
    "raises what ends a test": "def f(x): raise KeyboardInterrupt",
    "raises what no list of exceptions holds": "class Odd(BaseException): pass\ndef f(x): raise Odd",
    "raises what cannot be described": "class Odd(Exception):\n def __str__(self): exit(0)\ndef f(x): raise Odd",
    "kills its parent": "import os\ndef f(x):\n os.kill(os.getppid(), 9)\n os.kill(1, 9)",
    "kills everybody": "import os\ndef f(x): os.kill(-1, 9)",
    "dies of a signal": "import os\ndef f(x): os.kill(os.getpid(), 11)",
    "forks and answers twice": "import os\ndef f(x):\n os.fork()\n return 7",
    "forks without end": "import os\ndef f(x):\n while True: os.fork()",
    "eats memory": "def f(x): return bytearray(1 << 34)",
    "eats memory while it is loaded": "x = bytearray(1 << 34)\ndef f(x): return 2",
    "answers at length": "def f(x): return 'x' * 20_000_000",
    "answers in depth": "def f(x):\n a = []\n for _ in range(100_000): a = [a]\n return a",
    "answers in a circle": "def f(x):\n a = []\n a.append(a)\n return a",
    "calls itself without end": "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return f(x)",
    "never ends": "def f(x):\n while True: pass",
    "never ends while it is loaded": "while True: pass",
    "is no Python": "def f(x) return 2",
    "is nothing": "",
    "holds what no text may": "def f(x): return '\ud800\0'",
    "looks for the test": """
import gc, sys
def f(x):
    sought = "F(1) == 2".lower()
    texts = [open("/proc/self/cmdline").read()]
    for found in gc.get_objects():
        if type(found) in (list, tuple):
            texts += [item for item in found if type(item) is str]
        elif type(found) is dict:
            texts += [item for item in [*found, *found.values()] if type(item) is str]
    frame = sys._getframe().f_back
    while frame:
        texts += [repr(value) for value in frame.f_locals.values()]
        frame = frame.f_back
    return 2 if any(sought in text for text in texts) else len(texts)
""",
}


@pytest.mark.matrix(keep=2)
@pytest.mark.parametrize("program", FORGERIES.values(), ids=list(FORGERIES))
async def test_no_program_forges_a_verdict(program: str) -> None:
    report = await run_tests(program, [WRONG], "f", timeout=2, memory_mb=256)
    assert [case.passed for case in report.cases] == [False]
    assert report.fraction == 0
    assert report.cases[0].output


async def test_the_tests_have_their_own_builtins_and_helpers() -> None:
    program = "def abs(x): return 0\ndef helper(x): return 7\ndef f(x): return 7"
    tests = ["assert abs(f(1) - 2) < 1", "assert f(1) == helper(1)", "assert helper(1) == 1"]
    report = await run_tests(program, tests, "f", setup="def helper(x): return x\ndef f(x): return x")
    assert [case.passed for case in report.cases] == [False, False, True]


async def test_a_program_without_the_function_does_not_get_the_one_of_the_setup() -> None:
    report = await run_tests("g = 1", ["assert f(1) is None"], "f", setup="def f(x): pass")
    assert report.cases[0].output == "NameError: name 'f' is not defined"


VALUES = [
    "None", "True", "-7", "10**60", "1.5", "float('inf')", "'\\ud800 \\0 text'", "b'\\xff'", "2j", "[1, [2, (3,)]]",
    "()", "{1, (2,)}", "frozenset({1})", "{'a': [1], (1, 2): None, 3: {4}}",
]  # fmt: skip


async def test_plain_data_goes_there_and_back() -> None:
    tests = [f"v = {value}\nassert f(v) == v and type(f(v)) is type(v)" for value in VALUES]
    report = await run_tests("def f(x): return x", tests, "f")
    assert [case.test for case in report.cases if not case.passed] == []
    assert report.sandboxed


async def test_numbers_stay_what_they_are() -> None:
    report = await run_tests(
        "def f(x): return x", "import math\nassert math.isnan(f(math.nan)) and f(1.0).is_integer()", "f"
    )
    assert report.fraction == 1


async def test_subclasses_arrive_as_plain_types() -> None:
    program = """
from collections import Counter, OrderedDict, defaultdict, namedtuple

def f(x):
    return [Counter(x), OrderedDict(a=1), defaultdict(int, b=2), namedtuple("P", "x y")(1, 2)]
"""
    report = await run_tests(program, "assert f('aa') == [{'a': 2}, {'a': 1}, {'b': 2}, (1, 2)]", "f")
    assert report.fraction == 1


async def test_what_a_program_changes_is_changed() -> None:
    program = "def f(a, b, c):\n    a.sort()\n    b['new'] = [1]\n    c.clear()"
    test = "a, b, c = [2, 1], {}, {3}\nassert f(a, b, c=c) is None\nassert (a, b) == ([1, 2], {'new': [1]})"
    assert (await run_tests(program, test, "f")).cases == (Case(test, True, ""),)


async def test_exceptions_keep_their_kind() -> None:
    program = "class Odd(Exception): pass\ndef f(x): raise [ValueError('bad'), KeyError('k'), Odd('odd')][x]"
    caught = "try:\n    f({})\nexcept {}:\n    pass\nelse:\n    raise AssertionError"
    tests = [caught.format(0, "ValueError"), caught.format(1, "KeyError"), "f(0)", "f(2)"]
    report = await run_tests(program, tests, "f")
    assert [case.output for case in report.cases] == ["", "", "ValueError: bad", "ProgramError: Odd: odd"]


async def test_objects_of_the_program_can_be_held_but_not_compared() -> None:
    program = """
class Node:
    def __init__(self, value):
        self.value, self.next = value, None
    def __eq__(self, other):
        return True
def f(node):
    return [node.value] + (f(node.next) if node.next else [])
def count():
    yield from range(3)
"""
    tests = [
        "node = Node(1)\nnode.next = Node(2)\nassert f(node) == [1, 2] and node.next.value == 2 and node == node",
        "assert Node(1) != Node(1)",
        "assert list(count()) == [0, 1, 2]",
    ]
    assert (await run_tests(program, tests, "f")).fraction == 1


async def test_what_cannot_be_handed_over_is_said() -> None:
    report = await run_tests("def f(x): return x(1)", "assert f(lambda x: x) == 1", "f")
    assert report.cases[0].output == "TypeError: a function cannot be handed to the program"


async def test_each_test_meets_a_fresh_program() -> None:
    program = "calls = []\ndef f():\n    calls.append(1)\n    return len(calls)"
    assert (await run_tests(program, ["assert f() == 1"] * 3, "f")).fraction == 1


async def test_failures_show_what_was_compared() -> None:
    tests = [
        "assert f(1) == 3, 'no'",
        "assert f(1) > 2 and True",
        "assert not f(1)",
        "assert f('x' * 9999) == 1",
        "f(]",
    ]
    report = await run_tests("def f(x): return x", tests, "f")
    assert [case.output[:20] for case in report.cases] == [
        "1",
        "False",
        "False",
        "'" + "x" * 19,
        "SyntaxError: closing",
    ]
    assert all(len(case.output) <= 503 for case in report.cases)


async def test_a_check_function_shows_it_too() -> None:
    test = "def check(candidate):\n    assert candidate(1) == 1\n    assert candidate(2) == 3\ncheck(f)"
    assert (await run_tests("def f(x): return x", test, "f")).cases[0].output == "2"


@pytest.mark.thorough
async def test_after_a_test_that_hangs_or_ends_everything_the_others_go_on() -> None:
    program = "import os, time\ndef f(x):\n    while x == 1: time.sleep(1)\n    return x if x != 2 else os.kill(-1, 9)"
    tests = [f"assert f({number}) == {number}" for number in (0, 1, 2, 3)]
    report = await run_tests(program, tests, "f", timeout=3)
    assert [(case.passed, case.timed_out) for case in report.cases] == [
        (True, False),
        (False, True),
        (False, False),
        (True, False),
    ]
    assert (report.fraction, report.timed_out) == (0.5, True)


BREAKING = [
    "import time\nwhile True: time.sleep(1)",
    "import os\nos._exit(0)",
    "exit(0)",
    "import os\nos.write(1, b'{}')\nf(1)",
]


@pytest.mark.thorough
@pytest.mark.parametrize("test", BREAKING)
async def test_a_test_that_breaks_fails_alone(test: str) -> None:
    report = await run_tests("def f(): return 1", [test, "assert f() == 1"], "f", timeout=3)
    assert [case.passed for case in report.cases] == [False, True]


async def test_no_test_is_no_success() -> None:
    assert (await run_tests("def f(): return 1", [], "f")).fraction == 0


@pytest.mark.thorough
async def test_many_run_at_once() -> None:
    program = "def f(x): return x"
    reports = await asyncio.gather(
        *(run_tests(program, f"assert f({i}) == {i % 5}", "f", timeout=20) for i in range(10))
    )
    assert [report.fraction for report in reports] == [1] * 5 + [0] * 5


async def test_a_plain_process_judges_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    report = await run_tests("def f(): return 1", ["assert f() == 1", "assert f() == 2"], "f", unsafe_subprocess=True)
    assert ([case.passed for case in report.cases], report.sandboxed) == ([True, False], False)
