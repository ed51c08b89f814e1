"""Why a program fares otherwise than in its log: by rule."""

import pytest

from bench.replays.reasons import Program, explain, names

DOUBLE = "def double(x):\n    return 2 * x"


def program(text: str = DOUBLE, prompt: str = "", tests: str = "assert double(1) == 2", log: str = "") -> Program:
    return Program(text, prompt, tests, log)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (program(f"import no_such_library\n{DOUBLE}"), "the program imports no_such_library"),
        (
            program(log="assert double(1) # output: sum() missing 1 required positional argument: 'b'"),
            "replaced `sum`",
        ),
        (program(prompt="def halve(x):\n    ...\ndef double(x):\n", tests="assert double(halve(2)) == 2"), "our tests"),
        (program("def area(r):\n    return math.pi * r"), "a name is defined nowhere"),
        (program(tests="assert double(1) == factorial(2)"), "a name is defined nowhere"),
        (program("def f():\n    def g():\n        pass", tests="assert g() is None"), "a name is defined nowhere"),
    ],
)
def test_a_rule_explains(case: Program, reason: str) -> None:
    assert reason in (explain(case) or "")


@pytest.mark.parametrize(
    "case",
    [
        program(),
        program("this is no program"),
        program(log="assert double(1) == 3 # output: 2"),
        program(log="assert double(1) # output: double() missing 1 required positional argument: 'x'"),
        program("def f(x: List[int]) -> int:\n    return sum(x)", tests="assert f([1]) == 1"),
    ],
)
def test_where_no_rule_applies_nothing_is_explained(case: Program) -> None:
    assert explain(case) is None


def test_names_of_a_source() -> None:
    found = names("import os.path as p\nfrom re import sub\ndef f(a):\n    b = sub(a)\n    return p, c")
    assert found.bound == {"p", "sub", "f", "a", "b"}
    assert found.seen == {"p", "sub", "f"}
    assert {"sub", "a", "p", "c"} == found.used
    assert found.modules == {"os", "re"}
